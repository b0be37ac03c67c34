import { type Environment, onBed, startEnvironment } from '../../bed/environment.js';
import { gateOfProgram } from '../../bed/real-nodes/isolated-program.js';
import { openGate } from '../../bed/real-nodes/forwarder.js';
import { waitLonger } from '../../bed/processes/wait.js';
import { Story } from '../../bed/story/story.js';
import { faultsOf } from './faults.js';
import { showGuest } from './guest-steps.js';
import { Narrator } from './narrator.js';
import { runOnRealNodes, withQuickSettings } from './nodes.js';
import { runScenario } from './scenario.js';
import { followTutorial } from './tutorial.js';

// make demo [KEEP=1]: runs the commands of a tutorial on a real control plane, then a full pool, killed processes, and a guest.
const keep = (process.env.KEEP ?? '') !== '';
const gate = gateOfProgram();
let interrupt: () => void = () => process.exit(130); // the bed's processes end with this one
const narrator = new Narrator();
waitLonger(5);

process.exitCode = (await runOnRealNodes(import.meta.filename, narrator)) ?? (await showAll());

async function showAll(): Promise<number> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupt());
  introduce();
  const progress = (line: string) => narrator.progress(line);
  const environment = await startEnvironment(progress, { isBuilt: gate !== undefined, overlay: withQuickSettings });
  try {
    if (await show(environment)) {
      await environment.stop();
      return 0;
    }
  } catch (error) {
    console.error(error);
  }
  sayWhereLogsAre(environment);
  return process.exit(1); // as after a crash: all processes end, and the logs stay
}

/** @returns whether all checks passed */
async function show(environment: Environment): Promise<boolean> {
  await followTutorial(environment, narrator);
  const story = await Story.begin(environment, 'demo');
  await runScenario(story, narrator, faultsOf(environment));
  await showGuest(story, narrator, environment);
  const failed = narrator.end();
  if (keep) {
    await describeUse(environment);
    await new Promise<void>((resolve) => (interrupt = resolve));
  } else narrator.say('Next: `make demo KEEP=1` leaves everything running for kubectl. `make test` runs all tests.');
  await story.end();
  return failed === 0;
}

function introduce(): void {
  if (gate !== undefined) {
    narrator.chapter('A control plane of Kubernetes and KubeVirt starts, and two nodes with Holdfast in pods');
    narrator.say('Real: etcd, kube-apiserver, controller-manager, scheduler, virt-api, virt-controller.');
    narrator.say(
      'Real, on each node: kubelet, containerd, runc, the DaemonSet of Multus, and the image and manifests of Holdfast.',
    );
    narrator.say('Simulated: virt-handler. No guest runs: the launcher pod answers pings.');
  } else if (onBed) {
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

async function describeUse(environment: Environment): Promise<void> {
  const { kubeconfig, realCluster } = environment;
  const path = gate && realCluster ? await openGate(realCluster, gate) : kubeconfig;
  narrator.chapter('Everything runs until Ctrl-C. Commands for another terminal');
  narrator.say(`export KUBECONFIG=${path}`);
  narrator.say('kubectl wait apools --all --for=delete --timeout=5m   # the next network has the same addresses');
  narrator.say('kubectl apply -n demo -f manifests/samples/holdfast-network.yaml -f manifests/samples/vm.yaml');
  narrator.say('kubectl get -n demo vm,vmi,pods,ipamclaims');
  narrator.say('kubectl get apools,aleases   # pools, leases and their owners');
  sayWhereLogsAre(environment);
}

function sayWhereLogsAre({ bed, realCluster }: Environment): void {
  const logs = (bed ?? realCluster)?.logDir;
  if (logs !== undefined) narrator.say(`logs: ${logs}`);
}
