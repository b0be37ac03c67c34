import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { onBed, startEnvironment } from '../../bed/environment.js';
import { Story } from '../../bed/story/story.js';
import { showGuest } from './guest-steps.js';
import { Narrator } from './narrator.js';
import { PAGE } from './page.js';
import { parsePage } from './page/document.js';
import { PageRunner } from './page/page-runner.js';
import { openTerminal } from './page/terminal.js';
import { runScenario } from './scenario.js';

// make demo [KEEP=1]: runs the commands of a tutorial on a real control plane, then a full pool, killed processes, and a guest.
const keep = (process.env.KEEP ?? '') !== '';
const narrator = new Narrator();

introduce();
const environment = await startEnvironment((line) => {
  narrator.progress(line);
});

process.exitCode = 1; // until all steps are done
try {
  await followPage();
  const story = await Story.begin(environment, 'demo');
  await runScenario(story, narrator, environment.bed);
  await showGuest(story, narrator, environment.bed);
  const failed = narrator.end();
  if (keep) await stayUp();
  else narrator.say('Next: `make demo KEEP=1` leaves everything running for kubectl. `make test` runs all tests.');
  await story.end();
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  await environment.stop();
}

function introduce(): void {
  if (onBed) {
    narrator.chapter('A control plane of Kubernetes and KubeVirt starts on loopback, and Holdfast with it');
    narrator.say('Real: etcd, kube-apiserver, controller-manager, scheduler, virt-api, virt-controller, Holdfast.');
    narrator.say('Real, where this machine allows network namespaces: Multus, the bridge plugin, bridges, packets.');
    narrator.say(
      'Simulated: kubelet and virt-handler of two nodes. In most VMs no guest runs: the launcher pod answers pings.',
    );
  } else {
    narrator.chapter('E2E_KUBECONFIG names a cluster with KubeVirt, Multus and Holdfast');
  }
}

async function followPage(): Promise<void> {
  const { title, sections } = parsePage(await readFile(PAGE, 'utf8'));
  const terminal = await openTerminal(environment);
  narrator.part(title);
  narrator.say('These are the commands of docs/tutorials/bridge-in-five-minutes.md with their output.');
  if (!terminal.hasNetworks)
    narrator.say('Pod networks are simulated on this machine: no pings, and no addresses of ordinary pods.');
  try {
    await new PageRunner(terminal, narrator).run(sections);
  } finally {
    await terminal.kubectl.close();
  }
}

async function stayUp(): Promise<void> {
  narrator.chapter('Everything runs until Ctrl-C. Commands for another terminal');
  narrator.say(`export KUBECONFIG=${environment.kubeconfig}`);
  narrator.say('kubectl apply -n demo -f manifests/samples/holdfast-network.yaml -f manifests/samples/vm.yaml');
  narrator.say('kubectl get -n demo vm,vmi,pods,ipamclaims');
  narrator.say('kubectl get apools,aleases   # pools, leases and their owners');
  if (environment.bed) narrator.say(`logs: ${environment.bed.logDir}`);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
}
