import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { onBed, startEnvironment } from '../environment.js';
import { Story } from '../story/story.js';
import { Narrator } from './narrator.js';
import { PAGE } from './page.js';
import { parsePage } from './page/document.js';
import { PageRunner } from './page/page-runner.js';
import { openTerminal } from './page/terminal.js';
import { runScenario } from './scenario.js';

// make demo [KEEP=1]: a page of the documents followed word for word, and then trouble, on a real control plane.
const keep = (process.env.KEEP ?? '') !== '';
const narrator = new Narrator();

introduce();
const environment = await startEnvironment((line) => {
  narrator.progress(line);
});

process.exitCode = 1; // until the tale has been told to its end
try {
  await followPage();
  const story = await Story.begin(environment, 'demo');
  await runScenario(story, narrator, environment.bed);
  const broken = narrator.end();
  if (keep) await stayUp();
  else
    narrator.say(
      'Next: `make demo KEEP=1` leaves all of it running for kubectl; `make test` runs every story there is.',
    );
  await story.end();
  process.exitCode = broken === 0 ? 0 : 1;
} finally {
  await environment.stop();
}

function introduce(): void {
  if (onBed) {
    narrator.chapter('A Kubernetes and KubeVirt control plane comes up on loopback, and Holdfast beside it');
    narrator.say('Real: etcd, kube-apiserver, controller-manager, scheduler, virt-api, virt-controller, Holdfast.');
    narrator.say('Real, where this machine allows network namespaces: Multus, the bridge plugin, bridges, packets.');
    narrator.say('Simulated: two nodes, that is kubelet and virt-handler. No guest runs: its pod answers for it.');
  } else {
    narrator.chapter('A cluster with KubeVirt, Multus and Holdfast, which E2E_KUBECONFIG names');
  }
}

async function followPage(): Promise<void> {
  const { title, sections } = parsePage(await readFile(PAGE, 'utf8'));
  const terminal = await openTerminal(environment);
  narrator.part(title);
  narrator.say('What follows is docs/tutorials/bridge-in-five-minutes.md, word for word, with what is seen.');
  if (!terminal.hasNetworks)
    narrator.say('The networks of pods are simulated here: no ping, and no addresses of plain pods.');
  if (terminal.kubectl === undefined) narrator.say('kubectl is not installed here: the demo does what it would do.');
  await new PageRunner(terminal, narrator).run(sections);
}

async function stayUp(): Promise<void> {
  narrator.chapter('All of it stays up until Ctrl-C. To look around in another terminal');
  narrator.say(`export KUBECONFIG=${environment.kubeconfig}`);
  narrator.say('kubectl apply -n demo -f manifests/samples/holdfast-network.yaml -f manifests/samples/vm.yaml');
  narrator.say('kubectl get -n demo vm,vmi,pods,ipamclaims');
  narrator.say('kubectl get apools,aleases   # which addresses there are, and who has them');
  if (environment.bed) narrator.say(`logs: ${environment.bed.logDir}`);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
}
