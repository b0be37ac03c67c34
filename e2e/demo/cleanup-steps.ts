import { ADDRESS_POOLS, IPAM_CLAIMS } from '../../kube/resources.js';
import type { ClaimLeaseObserver } from '../story/claim-lease-observer.js';
import { until, untilValue } from '../bed/wait.js';
import { checkPool, showLeases } from './checks.js';
import { CAPACITY, CLAIM, COOLED_WITHIN_MS, type Allocation, type DemoContext, VM } from './context.js';

export async function deleteVm(context: DemoContext, allocation: Allocation): Promise<void> {
  const { story, narrator } = context;
  narrator.chapter('The VM owner deletes the VM');
  await story.deleteVm(VM, 'Background');
  await story.waitGone(VM);
  narrator.show('VM, VMI and launcher', 'gone');
  await narrator.checkSoon('the claim went with it', story.claims.waitGone(CLAIM));
  await narrator.checkSoon(
    'its addresses are released, and rest before anybody may have them',
    waitReleased(context, allocation),
  );
  await showLeases(context);
  const waiting = await story.waitForClaim('late.data');
  narrator.check('VM late still waits', waiting.status?.ips?.length === 0);
  const counts = { leased: 2, cooling: 2, free: CAPACITY - 4 };
  await checkPool(context, 'the pool counts them as cooling down', { counts });
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

/** What was the hero's is of use to who waited longest. */
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
  await narrator.checkSoon(`VM late, which waited, has ${freed} now`, wait);
  const counts = { leased: 4, cooling: 0, free: CAPACITY - 4 };
  await checkPool(context, 'and what nobody waits for is free', { counts, timeoutMs: COOLED_WITHIN_MS });
  await showLeases(context);
}

export async function deleteEverything(context: DemoContext): Promise<void> {
  const { story, narrator, pool } = context;
  narrator.chapter('All VMs are deleted, and NAD blue');
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
  await narrator.checkSoon('the pool is deleted with the NAD that it was derived from', isDeleted);
}

/** What was seen of every moment between the chapters. */
export function checkObservations(
  { narrator }: DemoContext,
  { events, releases, violations }: ClaimLeaseObserver,
): void {
  narrator.chapter('Somebody watched all leases and claims from the first to the last');
  narrator.show('changes seen', `${String(events)}, of which ${String(releases)} are releases`);
  for (const violation of violations) narrator.say(`  ${violation}`);
  narrator.check(
    'no address ever had two owners, left a claim that was there, or was given on before it had cooled down',
    violations.length === 0 && releases > 0,
  );
}
