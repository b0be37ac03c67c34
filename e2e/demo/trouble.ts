import type { BedWithHoldfast } from '../environment.js';
import { checkKept, checkNewcomer, checkReferences } from './look.js';
import { type Holding, type Stage, VM } from './stage.js';

/** What is only done to a cluster that is our own. */
export async function trouble(stage: Stage, holding: Holding): Promise<void> {
  const { bed, narrator } = stage;
  if (bed === undefined) {
    narrator.chapter('Left out: controller and ipam are killed, the API server restarts');
    narrator.say('This cluster is not the demo’s own, so nothing of it is killed.');
    return;
  }
  await killHoldfast(stage, bed, holding);
  await restartApiServer(stage, bed, holding);
}

async function killHoldfast(stage: Stage, bed: BedWithHoldfast, holding: Holding): Promise<void> {
  const { story, narrator } = stage;
  narrator.chapter('Controller and ipam are killed, and the VM restarts while they are dead');
  await Promise.all([bed.controller.kill(), bed.ipam.kill()]);
  await story.restart(VM);
  await checkReferences(stage, 'without them, the new launcher pod points at the claim');
  await Promise.all([bed.controller.start(), bed.ipam.start()]);
  narrator.show('controller and ipam', 'are back: they know what the API server tells them, and nothing else');
  await checkNewcomer(stage);
  await checkKept(stage, holding, 'after the kill');
}

async function restartApiServer(stage: Stage, bed: BedWithHoldfast, holding: Holding): Promise<void> {
  const { narrator } = stage;
  narrator.chapter('The API server is killed, and comes back');
  await bed.apiServer.kill();
  await bed.apiServer.start();
  narrator.show('kube-apiserver', 'is back; controller, webhook and ipam were not touched');
  await checkNewcomer(stage);
  await checkKept(stage, holding, 'after that');
}
