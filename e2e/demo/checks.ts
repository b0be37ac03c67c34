import type { AddressLease } from '../../api/address-lease.js';
import type { AddressPoolStatus } from '../../api/address-pool.js';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import { type Pod, podInterfaceName } from '../../api/pod.js';
import { ADDRESS_POOLS } from '../../kube/resources.js';
import { conditionOf } from '../../bed/story/addresses.js';
import { untilValue } from '../../bed/processes/wait.js';
import { CLAIM, type Allocation, type DemoContext, VM } from './context.js';

/** Prints the launchers of the VM with their network elements. */
export async function showLaunchers({ story, narrator }: DemoContext): Promise<void> {
  for (const pod of await story.launchers(VM)) {
    narrator.show(`pod ${pod.metadata.name}`, `on ${pod.spec?.nodeName ?? 'no node yet'}`);
    for (const element of networkElements(pod)) narrator.show('  network element', element);
  }
}

function networkElements(pod: Pod): string[] {
  const list = JSON.parse(pod.metadata.annotations?.[NETWORKS_ANNOTATION] ?? '[]') as object[];
  return list.map((element) => JSON.stringify(element));
}

export async function checkReferences({ story, narrator }: DemoContext, expectation: string): Promise<void> {
  const [only] = await story.references(VM);
  const isRight = only?.[podInterfaceName('data')] === CLAIM && only[podInterfaceName('guest')] === undefined;
  narrator.check(expectation, isRight);
}

/** Prints the leases of the demo's namespace. */
export async function showLeases({ story, narrator }: DemoContext): Promise<void> {
  const leases = [...(await story.addresses.leases()).values()];
  narrator.show('AddressLeases', leases.length === 0 ? 'none' : String(leases.length));
  if (leases.length > 0) narrator.table(['ADDRESS', 'OWNER', 'STATE'], leases.map(leaseRow));
}

function leaseRow({ spec }: AddressLease): string[] {
  const { owner, releasedAt } = spec;
  const who = owner === undefined ? 'none' : `${owner.kind} ${owner.namespace}/${owner.name}`;
  return [
    spec.address,
    who,
    releasedAt === undefined ? 'held' : `released at ${releasedAt.slice(11, 19)}, cooling down`,
  ];
}

type Counts = Partial<Omit<AddressPoolStatus, 'conditions'>>;

/** Waits until the status of the pool has these counts: it is written about once a second here. */
export async function checkPool(
  { story, narrator, pool }: DemoContext,
  expectation: string,
  { counts, timeoutMs = 30_000 }: { counts: Counts; timeoutMs?: number },
): Promise<void> {
  const wanted = Object.entries(counts) as [keyof Counts, number][];
  const isRight = (status?: AddressPoolStatus) => wanted.every(([name, count]) => status?.[name] === count);
  const read = async () => (await story.client.find(ADDRESS_POOLS, { name: pool }))?.status;
  const wait = untilValue(`AddressPool ${pool} to count ${JSON.stringify(counts)}`, read, isRight, { timeoutMs });
  await narrator.checkSoon(expectation, wait);
  narrator.show(`AddressPool ${pool}`, describeCounts(await read()));
}

function describeCounts(status: AddressPoolStatus | undefined): string {
  if (status === undefined) return 'has no status';
  const { capacity, leased, heldByStopped, cooling, free } = status;
  return [
    `capacity ${String(capacity)}`,
    `leased ${String(leased)} (${String(heldByStopped)} by stopped VMs)`,
    `cooling ${String(cooling)}`,
    `free ${String(free)}`,
  ].join(', ');
}

/** Checks that the VM still has the same claim, addresses and leases. */
export async function checkUnchanged(
  { story, narrator }: DemoContext,
  allocation: Allocation,
  when: string,
): Promise<void> {
  const claim = await story.waitForClaim(CLAIM);
  const leases = await story.addresses.leases();
  const ips = claim.status?.ips ?? [];
  narrator.show(`IPAMClaim ${CLAIM}`, `status.ips ${ips.join(' ')}`);
  const { uid } = allocation.claim.metadata;
  narrator.check(`${when}, it has the same claim`, claim.metadata.uid === uid);
  const leased = [...allocation.leases].every(([address, leaseUid]) => {
    const lease = leases.get(address);
    const isHeld = lease?.spec.owner?.uid === uid && lease?.spec.releasedAt === undefined;
    return isHeld && lease?.metadata.uid === leaseUid;
  });
  narrator.check(
    `${when}, it has the same addresses, held by the same leases`,
    ips.join() === allocation.ips.join() && leased,
  );
}

/**
 * Creates a claim while the pool is full: the IPAM must answer, and must not allocate an address that is held.
 * @param timeoutMs longer than the retry of a write that the API server rejected while it started
 */
export async function checkNewClaim({ story, narrator, network }: DemoContext, timeoutMs = 100_000): Promise<void> {
  await story.claims.createPlain('newcomer', network);
  const condition = await untilValue(
    'IPAMClaim newcomer to have a condition',
    async () => conditionOf(await story.waitForClaim('newcomer')),
    (found) => found !== undefined,
    { timeoutMs },
  ).catch(() => undefined);
  narrator.show('IPAMClaim newcomer', condition?.message ?? 'has no condition');
  narrator.check('a new claim gets no address, and its condition says why', condition?.reason === 'SubnetExhausted');
  await story.claims.remove('newcomer');
}
