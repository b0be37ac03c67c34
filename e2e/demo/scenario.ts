import type { BedWithHoldfast } from '../environment.js';
import { ClaimLeaseObserver } from '../story/claim-lease-observer.js';
import type { Story } from '../story/story.js';
import { createVm, defineNetworks, checkNewPool } from './setup-steps.js';
import { checkObservations, deleteVm, deleteEverything, waitReused } from './cleanup-steps.js';
import { startVm, startVmAgain, stopVm } from './vm-steps.js';
import type { Narrator } from './narrator.js';
import { COOLDOWN_SECONDS, type DemoContext } from './context.js';
import { injectFaults } from './fault-steps.js';

/** The life of one VM with two secondary networks, told step by step with the objects as they are. */
export async function runScenario(story: Story, narrator: Narrator, bed: BedWithHoldfast | undefined): Promise<void> {
  narrator.part('A network with too few addresses, and trouble');
  const stage: DemoContext = { story, narrator, bed, ...(await defineNetworks(story, narrator)) };
  const observer = startObserver(stage);
  try {
    await runSteps(stage);
  } finally {
    await observer.stop();
  }
  checkObservations(stage, observer);
}

async function runSteps(stage: DemoContext): Promise<void> {
  await checkNewPool(stage);
  const holding = await createVm(stage);
  await startVm(stage, holding);
  await stopVm(stage, holding);
  await startVmAgain(stage, holding);
  await injectFaults(stage, holding);
  await deleteVm(stage, holding);
  await waitReused(stage, holding);
  await deleteEverything(stage);
}

function startObserver({ story, network, bed }: DemoContext): ClaimLeaseObserver {
  // elsewhere nobody knows whether our clock is the cluster's
  const cooldownMs = bed === undefined ? 0 : COOLDOWN_SECONDS * 1000;
  const observer = new ClaimLeaseObserver(story.client, { space: network, cooldownMs, namespace: story.namespace });
  observer.start();
  return observer;
}
