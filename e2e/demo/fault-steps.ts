import type { BedWithHoldfast } from '../environment.js';
import { checkUnchanged, checkNewClaim, checkReferences } from './checks.js';
import { type Allocation, type DemoContext, VM } from './context.js';

/** What is only done to a cluster that is our own. */
export async function injectFaults(context: DemoContext, allocation: Allocation): Promise<void> {
  const { bed, narrator } = context;
  if (bed === undefined) {
    narrator.chapter('Left out: controller and ipam are killed, the API server restarts');
    narrator.say('This cluster is not the demo’s own, so nothing of it is killed.');
    return;
  }
  await killHoldfast(context, bed, allocation);
  await restartApiServer(context, bed, allocation);
}

async function killHoldfast(context: DemoContext, bed: BedWithHoldfast, allocation: Allocation): Promise<void> {
  const { story, narrator } = context;
  narrator.chapter('Controller and ipam are killed, and the VM restarts while they are dead');
  await Promise.all([bed.controller.kill(), bed.ipam.kill()]);
  await story.restart(VM);
  await checkReferences(context, 'without them, the new launcher pod points at the claim');
  await Promise.all([bed.controller.start(), bed.ipam.start()]);
  narrator.show('controller and ipam', 'are back: they know what the API server tells them, and nothing else');
  await checkNewClaim(context);
  await checkUnchanged(context, allocation, 'after the kill');
}

async function restartApiServer(context: DemoContext, bed: BedWithHoldfast, allocation: Allocation): Promise<void> {
  const { narrator } = context;
  narrator.chapter('The API server is killed, and comes back');
  await bed.apiServer.kill();
  await bed.apiServer.start();
  narrator.show('kube-apiserver', 'is back; controller, webhook and ipam were not touched');
  await checkNewClaim(context);
  await checkUnchanged(context, allocation, 'after that');
}
