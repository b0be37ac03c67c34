import { checkUnchanged, checkPool, checkReferences, showLaunchers, showLeases } from './checks.js';
import { CAPACITY, type Allocation, type DemoContext, VM } from './context.js';

export async function startVm(context: DemoContext, allocation: Allocation): Promise<void> {
  context.narrator.chapter('The VM starts');
  await context.story.start(VM);
  await showLaunchers(context);
  await checkReferences(context, 'the launcher pod references the claim');
  await checkUnchanged(context, allocation, 'while the VM runs');
}

/** Other VMs need addresses while no pod uses those of the stopped VM. */
export async function stopVm(context: DemoContext, allocation: Allocation): Promise<void> {
  const { story, narrator } = context;
  narrator.chapter('The VM stops. Meanwhile VM other starts, and VM late is created');
  await story.stop(VM);
  narrator.show('VMI and launcher', 'gone');
  await story.runVm('other', { data: 'blue' });
  const others = await story.addresses.waitForIPs('other.data');
  narrator.show('IPAMClaim other.data', `status.ips ${others.join(' ')}`);
  narrator.check('VM other gets addresses, but none of the stopped VM', !overlap(others, allocation.ips));
  await story.createVm('late', { data: 'blue' }, { running: false });
  const refusal = story.addresses.waitForRefusal('late.data', 'SubnetExhausted').then(({ message }) => {
    narrator.show('IPAMClaim late.data', message);
  });
  await narrator.checkSoon('VM late waits, and its claim says why: a stopped VM keeps its addresses', refusal);
  await showLeases(context);
  await checkUnchanged(context, allocation, 'while the VM is stopped');
  const counts = { leased: 4, heldByStopped: 2, free: CAPACITY - 4 };
  await checkPool(context, 'the status of the pool counts the addresses that stopped VMs hold', { counts });
}

function overlap(some: readonly string[], others: readonly string[]): boolean {
  return some.length === 0 || some.some((one) => others.includes(one));
}

export async function startVmAgain(context: DemoContext, allocation: Allocation): Promise<void> {
  context.narrator.chapter('The VM starts again');
  await context.story.start(VM);
  await showLaunchers(context);
  await checkReferences(context, 'the new launcher pod references the claim');
  await checkUnchanged(context, allocation, 'after the VM started again');
}
