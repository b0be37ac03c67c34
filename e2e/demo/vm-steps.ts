import { checkUnchanged, checkPool, checkReferences, showLaunchers, showLeases } from './checks.js';
import { CAPACITY, type Allocation, type DemoContext, VM } from './context.js';

export async function startVm(context: DemoContext, allocation: Allocation): Promise<void> {
  context.narrator.chapter('The VM starts');
  await context.story.start(VM);
  await showLaunchers(context);
  await checkReferences(context, 'its launcher pod points at the claim');
  await checkUnchanged(context, allocation, 'now that it runs');
}

/** Others come who want an address, while the hero's are in use by no pod. */
export async function stopVm(context: DemoContext, allocation: Allocation): Promise<void> {
  const { story, narrator } = context;
  narrator.chapter('The VM stops. Others come meanwhile: VM other starts, VM late is made');
  await story.stop(VM);
  narrator.show('VMI and launcher', 'gone');
  await story.createVm('other', { data: 'blue' });
  await story.waitRunning('other');
  const others = await story.addresses.waitForIPs('other.data');
  narrator.show('IPAMClaim other.data', `status.ips ${others.join(' ')}`);
  narrator.check('VM other has addresses, and none of them is the stopped VM’s', !overlap(others, allocation.ips));
  await story.createVm('late', { data: 'blue' }, { running: false });
  const refusal = story.addresses.waitForRefusal('late.data', 'SubnetExhausted').then(({ message }) => {
    narrator.show('IPAMClaim late.data', message);
  });
  await narrator.checkSoon('VM late waits, and hears why: what a stopped VM holds is not free', refusal);
  await showLeases(context);
  await checkUnchanged(context, allocation, 'stopped');
  const counts = { leased: 4, heldByStopped: 2, free: CAPACITY - 4 };
  await checkPool(context, 'the pool tells how much stopped VMs hold', { counts });
}

function overlap(some: readonly string[], others: readonly string[]): boolean {
  return some.length === 0 || some.some((one) => others.includes(one));
}

export async function startVmAgain(context: DemoContext, allocation: Allocation): Promise<void> {
  context.narrator.chapter('The VM starts again');
  await context.story.start(VM);
  await showLaunchers(context);
  await checkReferences(context, 'the new launcher pod points at the claim');
  await checkUnchanged(context, allocation, 'started again');
}
