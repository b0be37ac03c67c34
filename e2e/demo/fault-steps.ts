import type { BedWithHoldfast } from '../../bed/environment.js';
import { checkUnchanged, checkNewClaim, checkReferences } from './checks.js';
import { type Allocation, type DemoContext, VM } from './context.js';

/** Kills processes, which is only done on the demo's own control plane. */
export async function injectFaults(context: DemoContext, allocation: Allocation): Promise<void> {
  const { bed, narrator } = context;
  if (bed === undefined) {
    narrator.chapter('Skipped: kill controller and ipam, restart the API server');
    narrator.say('E2E_KUBECONFIG names a cluster that does not belong to the demo, so no process is killed.');
    return;
  }
  await killHoldfast(context, bed, allocation);
  await restartApiServer(context, bed, allocation);
}

async function killHoldfast(context: DemoContext, bed: BedWithHoldfast, allocation: Allocation): Promise<void> {
  const { story, narrator } = context;
  narrator.chapter('Controller and ipam are killed, and the VM restarts before they do');
  await Promise.all([bed.controller.kill(), bed.ipam.kill()]);
  await story.restart(VM);
  await checkReferences(context, 'the new launcher pod references the claim although both are down');
  await Promise.all([bed.controller.start(), bed.ipam.start()]);
  narrator.show('controller and ipam', 'run again, and read all their state from the API server');
  await checkNewClaim(context);
  await checkUnchanged(context, allocation, 'after both were killed');
}

async function restartApiServer(context: DemoContext, bed: BedWithHoldfast, allocation: Allocation): Promise<void> {
  const { narrator } = context;
  narrator.chapter('The API server is killed and started again');
  await bed.apiServer.kill();
  await bed.apiServer.start();
  narrator.show('kube-apiserver', 'runs again; controller, webhook and ipam were not restarted');
  await checkNewClaim(context);
  await checkUnchanged(context, allocation, 'after the API server was killed');
}
