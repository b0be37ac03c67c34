import { checkKept, checkPool, checkReferences, showLaunchers, showLeases } from './look.js';
import { CAPACITY, type Holding, type Stage, VM } from './stage.js';

export async function start(stage: Stage, holding: Holding): Promise<void> {
  stage.narrator.chapter('The VM starts');
  await stage.story.start(VM);
  await showLaunchers(stage);
  await checkReferences(stage, 'its launcher pod points at the claim');
  await checkKept(stage, holding, 'now that it runs');
}

/** Others come who want an address, while the hero's are in use by no pod. */
export async function stop(stage: Stage, holding: Holding): Promise<void> {
  const { story, narrator } = stage;
  narrator.chapter('The VM stops. Others come meanwhile: VM other starts, VM late is made');
  await story.stop(VM);
  narrator.show('VMI and launcher', 'gone');
  await story.createVm('other', { data: 'blue' });
  await story.running('other');
  const others = await story.addresses.of('other.data');
  narrator.show('IPAMClaim other.data', `status.ips ${others.join(' ')}`);
  narrator.check('VM other has addresses, and none of them is the stopped VM’s', !overlap(others, holding.ips));
  await story.createVm('late', { data: 'blue' }, { running: false });
  const refusal = story.addresses.refused('late.data', 'SubnetExhausted').then(({ message }) => {
    narrator.show('IPAMClaim late.data', message);
  });
  await narrator.checkSoon('VM late waits, and hears why: what a stopped VM holds is not free', refusal);
  await showLeases(stage);
  await checkKept(stage, holding, 'stopped');
  const counts = { leased: 4, heldByStopped: 2, free: CAPACITY - 4 };
  await checkPool(stage, 'the pool tells how much stopped VMs hold', { counts });
}

function overlap(some: readonly string[], others: readonly string[]): boolean {
  return some.length === 0 || some.some((one) => others.includes(one));
}

export async function startAgain(stage: Stage, holding: Holding): Promise<void> {
  stage.narrator.chapter('The VM starts again');
  await stage.story.start(VM);
  await showLaunchers(stage);
  await checkReferences(stage, 'the new launcher pod points at the claim');
  await checkKept(stage, holding, 'started again');
}
