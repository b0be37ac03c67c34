import { ADDRESS_POOLS, IPAM_CLAIMS } from '../../kube/resources.js';
import type { ClaimLeaseObserver } from '../../bed/story/claim-lease-observer.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { checkPool, showLeases } from './checks.js';
import { CAPACITY, CLAIM, COOLED_WITHIN_MS, type Allocation, type DemoContext, VM } from './context.js';

export async function deleteVm(context: DemoContext, allocation: Allocation): Promise<void> {
  const { story, narrator } = context;
  narrator.chapter('The VM owner deletes the VM');
  await story.deleteVm(VM, 'Background');
  await story.waitGone(VM);
  narrator.show('VM, VMI and launcher', 'gone');
  await narrator.checkSoon('the claim of the VM is deleted', story.claims.waitGone(CLAIM));
  await narrator.checkSoon(
    'its addresses are released, and cool down before they can be allocated again',
    waitReleased(context, allocation),
  );
  await showLeases(context);
  const waiting = await story.waitForClaim('late.data');
  narrator.check('VM late still waits for an address', waiting.status?.ips?.length === 0);
  const counts = { leased: 2, cooling: 2, free: CAPACITY - 4 };
  await checkPool(context, 'the status of the pool counts them as cooling down', { counts });
}

function waitReleased({ story }: DemoContext, { claim, leases }: Allocation): Promise<unknown> {
  return until('the leases to be released', async () => {
    const now = await story.addresses.leases();
    return [...leases.keys()].every((address) => {
      const { owner, releasedAt } = now.get(address)?.spec ?? {};
      return owner?.uid === claim.metadata.uid && releasedAt !== undefined;
    });
  });
}

/** The released addresses go to the VM that waits. */
export async function waitReused(context: DemoContext, { ips }: Allocation): Promise<void> {
  const { story, narrator } = context;
  narrator.chapter('The addresses have cooled down');
  const [freed = ''] = ips;
  const wait = untilValue(
    `VM late to have ${freed}`,
    async () => (await story.client.get(IPAM_CLAIMS, story.ref('late.data'))).status?.ips ?? [],
    (found) => found.includes(freed),
    { timeoutMs: COOLED_WITHIN_MS },
  );
  await narrator.checkSoon(`VM late, which waited, now has ${freed}`, wait);
  const counts = { leased: 4, cooling: 0, free: CAPACITY - 4 };
  await checkPool(context, 'addresses for which no claim waits are free', { counts, timeoutMs: COOLED_WITHIN_MS });
  await showLeases(context);
}

export async function deleteEverything(context: DemoContext): Promise<void> {
  const { story, narrator, pool } = context;
  narrator.chapter('All VMs and NAD blue are deleted');
  await Promise.all(['other', 'late'].map((name) => story.deleteVm(name, 'Background')));
  await Promise.all(['other', 'late'].map((name) => story.waitGone(name)));
  await narrator.checkSoon('no claim is left', story.waitForClaims([]));
  const counts = { leased: 0, cooling: 0, free: CAPACITY };
  await checkPool(context, 'all addresses are free again', { counts, timeoutMs: COOLED_WITHIN_MS });
  await showLeases(context);
  await story.removeNetwork('blue');
  const isDeleted = until(`AddressPool ${pool} to be deleted`, async () => {
    return (await story.client.get(ADDRESS_POOLS, { name: pool })).metadata.deletionTimestamp;
  });
  await narrator.checkSoon('the pool is deleted with the NAD from which it was derived', isDeleted);
}

/** Reports the invariants that were checked at every change of a lease or claim. */
export function checkObservations(
  { narrator }: DemoContext,
  { events, releases, violations }: ClaimLeaseObserver,
): void {
  narrator.chapter('All changes of leases and claims were watched during these steps');
  narrator.show('observed changes', `${String(events)}, of which ${String(releases)} are releases`);
  for (const violation of violations) narrator.say(`  ${violation}`);
  narrator.check(
    'no address had two owners, left its claim while the claim existed, or was allocated again before its cool-down ended',
    violations.length === 0 && releases > 0,
  );
}
