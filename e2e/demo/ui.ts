import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { startEnvironment } from '../../bed/environment.js';
import { PLUGIN } from '../../bed/story/kubectl/kubectl-plugin.js';
import { Story } from '../../bed/story/story.js';

// make ui: opens the web page on a control plane with a few VMs, one of which waits because its pool is full.
const environment = await startEnvironment((line) => console.log(`  ${line}`));
try {
  const story = await Story.begin(environment, 'demo');
  await story.addresses.createNetwork('blue', ['10.100.0.0/16']);
  await story.addresses.createNetwork('small', ['10.101.0.0/30']);
  for (const name of ['web', 'database', 'mail']) await story.createVm(name, { data: 'blue', control: 'small' });
  await story.createVm('archive', { data: 'blue' }, { running: false });
  // Ctrl-C reaches both processes
  process.on('SIGINT', () => undefined);
  const page = spawn(PLUGIN, ['ui', '--kubeconfig', environment.kubeconfig], { stdio: 'inherit' });
  await once(page, 'exit');
  await story.end();
} finally {
  await environment.stop();
}
