import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { type IPAMClaim, claimNadOf } from '../../api/ipam-claim.js';
import { byAge, splitKey } from '../../api/meta.js';
import { AllocationReason, IPS_ALLOCATED } from '../../api/names.js';
import { STATE_NAMES, type AddressState } from '../../addressing/address-states.js';
import type { Family } from '../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import { type Range, lastIndexWhere } from '../../addressing/address/ranges.js';
import { type Pool, subnetOf } from '../../addressing/pool/pool.js';
import { groupBy } from '../group-by.js';
import { type AddressMap, defaultTimesOf, leasedState, unleasedRuns } from './address-map.js';

export type StateCounts = Readonly<Record<AddressState, bigint>>;

/** The leases of one address space. Many pools may share it, so no pool looks at the leases of the others one by one. */
export class SpaceLeases {
  readonly #byPool: ReadonlyMap<string, readonly LeaseRecord[]>;
  /** In ascending order, each once. */
  readonly #values: Readonly<Record<Family, readonly bigint[]>>;

  constructor(leases: readonly LeaseRecord[]) {
    this.#byPool = groupBy(leases, ({ pool }) => pool);
    const values = { 4: new Set<bigint>(), 6: new Set<bigint>() };
    for (const { address } of leases) values[address.family].add(address.value);
    const sorted = (each: Set<bigint>) => [...each].sort((a, b) => (a < b ? -1 : 1));
    this.#values = { 4: sorted(values[4]), 6: sorted(values[6]) };
  }

  ofPool(name: string): readonly LeaseRecord[] {
    return this.#byPool.get(name) ?? [];
  }

  /** Counts the leased addresses in a range, of whichever pool. O(log n) in the leases. */
  countIn({ first, last }: Range, family: Family): bigint {
    const values = this.#values[family];
    return BigInt(lastIndexWhere(values, (each) => each <= last) - lastIndexWhere(values, (each) => each < first));
  }
}

/**
 * Counts the addresses of one family by state, without a map: many pools of one address space may have the same addresses.
 * @param now milliseconds since the epoch
 */
export function countFamily(pool: Pool, family: Family, leases: SpaceLeases, now: number): StateCounts {
  const counts = noCounts();
  for (const { first, last, state } of pool.subnets
    .filter(({ cidr }) => cidr.family === family)
    .flatMap(unleasedRuns)) {
    const leased = leases.countIn({ first, last }, family);
    counts[state] += last - first + 1n - leased;
    counts['other-pool'] += leased;
  }
  const times = defaultTimesOf(pool);
  for (const lease of leases.ofPool(pool.name)) {
    const subnet = lease.address.family === family ? subnetOf(pool, lease.address) : undefined;
    if (subnet === undefined) continue;
    counts['other-pool'] -= 1n;
    counts[leasedState(lease, { pool, subnet, times, now })] += 1n;
  }
  return counts;
}

function noCounts(): Record<AddressState, bigint> {
  return Object.fromEntries(STATE_NAMES.map((state) => [state, 0n])) as Record<AddressState, bigint>;
}

/** Returns the longest range of free addresses of one family, in blocks or not; the first one of several. */
export function largestFreeRange({ subnets }: AddressMap, family: Family): Range | undefined {
  let largest: Range | undefined;
  for (const { cidr, runs } of subnets) {
    if (cidr.family !== family) continue;
    let current: Range | undefined;
    for (const { first, last, state } of runs) {
      if (state !== 'free') {
        current = undefined;
        continue;
      }
      // neighbours that are in blocks of different nodes
      current = { first: current?.first ?? first, last };
      if (largest === undefined || current.last - current.first > largest.last - largest.first) largest = current;
    }
  }
  return largest;
}

interface NamespaceUse {
  readonly namespace: string;
  readonly allocated: number;
}

/** Returns the namespaces whose owners have most of the pool's addresses, those with most first. */
export function topNamespaces(leases: Iterable<LeaseRecord>, pool: string): NamespaceUse[] {
  const counts = new Map<string, number>();
  for (const lease of leases) {
    if (lease.pool !== pool || lease.owner === undefined || stateOf(lease) !== 'held') continue;
    const { namespace } = lease.owner;
    counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
  }
  return [...counts]
    .map(([namespace, allocated]) => ({ namespace, allocated }))
    .sort((a, b) => b.allocated - a.allocated || (a.namespace < b.namespace ? -1 : 1));
}

/** Returns the claims that wait because the pool is full, oldest first, as ipam serves them. */
export function waitingClaims(pool: AddressPool, claims: Iterable<IPAMClaim>): IPAMClaim[] {
  return [...claims].filter((claim) => isExhausted(claim) && isServedBy(claim, pool)).sort(byAge);
}

function isExhausted({ status }: IPAMClaim): boolean {
  const condition = status?.conditions?.find(({ type }) => type === IPS_ALLOCATED);
  return condition?.status === 'False' && condition.reason === AllocationReason.Exhausted;
}

/** True if the pool serves the claim, as far as names tell: a derived pool serves the NADs of its namespace. */
function isServedBy(claim: IPAMClaim, pool: AddressPool): boolean {
  const { namespace = '' } = claim.metadata;
  if (claim.spec.network !== pool.spec.network) return false;
  const nadNamespace = nadNamespaceOf(pool);
  if (nadNamespace === undefined) return pool.spec.namespaces?.includes(namespace) ?? true;
  const nad = claimNadOf(claim);
  return (nad === undefined ? namespace : splitKey(nad).namespace) === nadNamespace;
}
