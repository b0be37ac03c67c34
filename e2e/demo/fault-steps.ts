import { checkUnchanged, checkNewClaim, checkReferences } from './checks.js';
import { type Allocation, type DemoContext, VM } from './context.js';
import type { Faults } from './faults.js';

/** Kills processes, which is only done on the demo's own control plane. */
export async function injectFaults(context: DemoContext, allocation: Allocation): Promise<void> {
  const { faults, narrator } = context;
  if (faults === undefined) {
    narrator.chapter('Skipped: kill controller and ipam, restart the API server');
    narrator.say('E2E_KUBECONFIG names a cluster that does not belong to the demo, so no process is killed.');
    return;
  }
  await killHoldfast(context, faults, allocation);
  await restartApiServer(context, faults, allocation);
}

async function killHoldfast(context: DemoContext, faults: Faults, allocation: Allocation): Promise<void> {
  const { story, narrator } = context;
  narrator.chapter(`Controller and ipam are killed, and the VM restarts ${faults.meanwhile}`);
  const started = await faults.killHoldfast();
  await story.restart(VM);
  await checkReferences(context, 'the new launcher pod references the claim although both were killed');
  await started();
  narrator.show('controller and ipam', 'run again, and read all their state from the API server');
  await checkNewClaim(context);
  await checkUnchanged(context, allocation, 'after both were killed');
}

async function restartApiServer(context: DemoContext, { apiServer }: Faults, allocation: Allocation): Promise<void> {
  const { narrator } = context;
  narrator.chapter('The API server is killed and started again');
  await apiServer.kill();
  await apiServer.start();
  narrator.show('kube-apiserver', 'runs again; nobody restarted controller, webhook and ipam');
  await checkNewClaim(context);
  await checkUnchanged(context, allocation, 'after the API server was killed');
}
