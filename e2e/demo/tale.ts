import type { BedWithHoldfast } from '../environment.js';
import { Observer } from '../story/observer.js';
import type { Story } from '../story/story.js';
import { createVm, defineNetworks, lookAtPool } from './beginning.js';
import { judge, remove, removeAll, reuse } from './ending.js';
import { start, startAgain, stop } from './life.js';
import type { Narrator } from './narrator.js';
import { COOLDOWN_SECONDS, type Stage } from './stage.js';
import { trouble } from './trouble.js';

/** The life of one VM with two secondary networks, told step by step with the objects as they are. */
export async function tellTale(story: Story, narrator: Narrator, bed: BedWithHoldfast | undefined): Promise<void> {
  narrator.part('A network with too few addresses, and trouble');
  const stage: Stage = { story, narrator, bed, ...(await defineNetworks(story, narrator)) };
  const observer = observe(stage);
  try {
    await tellLife(stage);
  } finally {
    await observer.stop();
  }
  judge(stage, observer);
}

async function tellLife(stage: Stage): Promise<void> {
  await lookAtPool(stage);
  const holding = await createVm(stage);
  await start(stage, holding);
  await stop(stage, holding);
  await startAgain(stage, holding);
  await trouble(stage, holding);
  await remove(stage, holding);
  await reuse(stage, holding);
  await removeAll(stage);
}

function observe({ story, network, bed }: Stage): Observer {
  // elsewhere nobody knows whether our clock is the cluster's
  const cooldownMs = bed === undefined ? 0 : COOLDOWN_SECONDS * 1000;
  const observer = new Observer(story.client, { space: network, cooldownMs, namespace: story.namespace });
  observer.start();
  return observer;
}
