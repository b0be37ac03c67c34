import { type Family, formatAddress } from '../../addressing/address/address.js';
import type { BlockRecord } from '../../addressing/block/block.js';
import { type Cidr, rangeOf } from '../../addressing/address/cidr.js';
import { coolingStart } from '../../addressing/lease/cooling-start.js';
import { type LeaseRecord, type LeaseTimes, isReservation, isSticky, stateOf } from '../../addressing/lease/lease.js';
import { leaseTimesOf } from '../../addressing/lease/lease-times.js';
import { type Pool, subnetOf } from '../../addressing/pool/pool.js';
import { type Range, type RangeSet, byFirst } from '../../addressing/address/ranges.js';
import type { Subnet } from '../../addressing/pool/subnet.js';
import type { AddressState } from '../../addressing/address-states.js';

/** Neighbouring addresses of one state, in blocks of the same node. */
export interface AddressRun extends Range {
  readonly state: AddressState;
  /** The node to whose block the addresses belong. */
  readonly node?: string;
}

export interface SubnetMap {
  readonly cidr: Cidr;
  /** In order, and without gaps: they cover the subnet. Neighbours differ. */
  readonly runs: readonly AddressRun[];
}

/** What each address of a pool is used for. */
export interface AddressMap {
  readonly pool: Pool;
  /** In the order of the pool's spec. */
  readonly subnets: readonly SubnetMap[];
  /** Leases of the pool whose addresses are in none of its subnets, or in another address space. */
  readonly outside: readonly LeaseRecord[];
}

/** The default of `--max-staleness`, which determines the shortest cool-down. A client cannot read the flag. */
const MAX_STALENESS_MS = 30_000;

/** Returns the times of a pool's leases, with the default flags of the processes. */
export function defaultTimesOf(pool: Pool): LeaseTimes {
  return leaseTimesOf(pool, { maxStalenessMs: MAX_STALENESS_MS, stickyMAC: true });
}

/**
 * Builds the map of a pool. Time and memory grow with the numbers of leases, blocks and ranges, never with the number of addresses.
 * @param leases those of the pool's address space, or at least those of the pool
 * @param blocks those of all pools, or at least those of the pool
 * @param now milliseconds since the epoch
 */
export function addressMapOf(
  pool: Pool,
  { leases, blocks = [] }: { leases: Iterable<LeaseRecord>; blocks?: Iterable<BlockRecord> },
  now: number,
): AddressMap {
  const bySubnet = new Map<Subnet, LeaseRecord[]>(pool.subnets.map((subnet) => [subnet, []]));
  const outside: LeaseRecord[] = [];
  for (const lease of leases) {
    const subnet = lease.addressSpace === pool.addressSpace ? subnetOf(pool, lease.address) : undefined;
    if (subnet !== undefined) bySubnet.get(subnet)?.push(lease);
    else if (lease.pool === pool.name) outside.push(lease);
  }
  const lent = [...blocks].filter((block) => block.pool === pool.name);
  const times = defaultTimesOf(pool);
  const subnets = pool.subnets.map((subnet) => {
    const { cidr } = subnet;
    const leased = (bySubnet.get(subnet) ?? []).map((lease) => ({
      first: lease.address.value,
      last: lease.address.value,
      state: leasedState(lease, { pool, subnet, times, now }),
    }));
    const inBlocks = lent
      .filter((block) => block.cidr.family === cidr.family)
      .map((block) => ({ ...rangeOf(block.cidr), node: block.node }));
    const withLeases = overlay(unleasedRuns(subnet), leased);
    return { cidr, runs: overlay(withLeases, inBlocks) };
  });
  return { pool, subnets, outside };
}

/** Formats a range: one address, or `first-last`. */
export function formatRange({ first, last }: Range, family: Family): string {
  const from = formatAddress({ family, value: first });
  return first === last ? from : `${from}-${formatAddress({ family, value: last })}`;
}

/** The state of an address that is leased. */
export function leasedState(
  lease: LeaseRecord,
  { pool, subnet, times, now }: { pool: Pool; subnet: Subnet; times: LeaseTimes; now: number },
): AddressState {
  if (lease.pool !== pool.name) return 'other-pool';
  const state = stateOf(lease);
  if (state === 'released') {
    const isKept = isSticky(lease, times) && !isReservation(lease);
    return isKept && now >= coolingStart(lease) + times.cooldownMs ? 'sticky' : 'cooling';
  }
  if (state === 'quarantined') return state;
  const { value } = lease.address;
  if (subnet.leasable.has(value) && !subnet.requestable.has(value)) return 'draining';
  return state === 'held' ? 'allocated' : 'reserved';
}

/** The states of a subnet without leases. */
export function unleasedRuns({ cidr, open, requestable, leasable }: Subnet): AddressRun[] {
  const layer = (set: RangeSet, state: AddressState) => set.ranges.map((range) => ({ ...range, state }));
  const known = [
    ...layer(open, 'free'),
    ...layer(requestable.subtract(open), 'reserved'),
    ...layer(leasable.subtract(requestable), 'drained'),
  ];
  return overlay([{ ...rangeOf(cidr), state: 'excluded' }], known);
}

/** Returns the runs with the properties of the patches, where these are. Of patches that overlap, the first counts. */
function overlay(
  runs: readonly AddressRun[],
  patches: readonly (Range & Partial<Pick<AddressRun, 'state' | 'node'>>)[],
): AddressRun[] {
  const sorted = patches.toSorted(byFirst);
  const result: GrowingRun[] = [];
  let next = 0;
  for (const run of runs) {
    for (let from = run.first; from <= run.last;) {
      let patch = sorted[next];
      while (patch !== undefined && patch.last < from) patch = sorted[++next];
      if (patch === undefined || patch.first > run.last) {
        append(result, run, from, run.last);
        break;
      }
      if (patch.first > from) append(result, run, from, patch.first - 1n);
      const first = patch.first > from ? patch.first : from;
      const last = patch.last < run.last ? patch.last : run.last;
      append(result, { state: patch.state ?? run.state, node: patch.node ?? run.node }, first, last);
      from = last + 1n;
    }
  }
  return result;
}

type GrowingRun = Omit<AddressRun, 'last'> & { last: bigint };

/** Extends the last run if it can: of a hundred thousand leases, most are neighbours of one state. */
function append(
  runs: GrowingRun[],
  { state, node }: { readonly state: AddressState; readonly node?: string | undefined },
  first: bigint,
  last: bigint,
): void {
  const before = runs.at(-1);
  if (before?.state === state && before.node === node) before.last = last;
  else runs.push({ first, last, state, ...(node !== undefined && { node }) });
}
