import { ClaimLeaseObserver } from '../../bed/story/claim-lease-observer.js';
import type { Story } from '../../bed/story/story.js';
import { createVm, defineNetworks, checkNewPool } from './setup-steps.js';
import { checkObservations, deleteVm, deleteEverything, waitReused } from './cleanup-steps.js';
import { startVm, startVmAgain, stopVm } from './vm-steps.js';
import type { Faults } from './faults.js';
import type { Narrator } from './narrator.js';
import { COOLDOWN_SECONDS, type DemoContext } from './context.js';
import { injectFaults } from './fault-steps.js';

/** Takes a VM with two secondary networks from creation to deletion, and shows the objects after each step. */
export async function runScenario(story: Story, narrator: Narrator, faults: Faults | undefined): Promise<void> {
  narrator.part('A VM keeps its addresses in a full pool, and while processes are killed');
  const context: DemoContext = { story, narrator, faults, ...(await defineNetworks(story, narrator)) };
  const observer = startObserver(context);
  try {
    await runSteps(context);
  } finally {
    await observer.stop();
  }
  checkObservations(context, observer);
}

async function runSteps(context: DemoContext): Promise<void> {
  await checkNewPool(context);
  const allocation = await createVm(context);
  await startVm(context, allocation);
  await stopVm(context, allocation);
  await startVmAgain(context, allocation);
  await injectFaults(context, allocation);
  await deleteVm(context, allocation);
  await waitReused(context, allocation);
  await deleteEverything(context);
}

function startObserver({ story, network, faults }: DemoContext): ClaimLeaseObserver {
  // on another cluster, its clock may differ from ours
  const cooldownMs = faults === undefined ? 0 : COOLDOWN_SECONDS * 1000;
  const observer = new ClaimLeaseObserver(story.client, { space: network, cooldownMs, namespace: story.namespace });
  observer.start();
  return observer;
}
