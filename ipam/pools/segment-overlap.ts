import { type Address, type Family, formatAddress } from '../core/address.js';
import type { Pool } from '../core/pool.js';
import type { Range } from '../core/ranges.js';

/** A pool whose addresses are used on a layer-2 segment. */
export interface SegmentPool {
  readonly pool: Pick<Pool, 'name' | 'addressSpace' | 'subnets'>;
  readonly nadNamespace?: string | undefined;
}

/** Another pool may lease the same address on the same segment, for nothing keeps addresses unique between address spaces. */
export interface SegmentOverlap {
  readonly address: Address;
  readonly other: SegmentPool;
}

/** Of a subnet with more ranges than this, all from the first to the last count, so that the cost of a pool is bounded. */
const MAX_RANGES = 8;

interface Interval extends Range {
  readonly owner: SegmentPool;
}

/** Finds the pools of one segment that overlap a pool of another address space, by name. The cost is n log n of the pools. */
export function findOverlaps(pools: Iterable<SegmentPool>): Map<string, SegmentOverlap> {
  const found = new Map<string, SegmentOverlap>();
  const all = [...pools];
  const spaces = new Set(all.map(({ pool }) => pool.addressSpace));
  if (spaces.size < 2) return found;
  for (const family of [4, 6] as const) {
    const intervals = all.flatMap((owner) => intervalsOf(owner, family)).sort((a, b) => compare(a.first, b.first));
    const recordOverlap = ({ owner, first, last }: Interval, other: Interval) => {
      const isShared = other.first <= last && first <= other.last;
      if (!isShared || found.has(owner.pool.name)) return;
      const value = first > other.first ? first : other.first;
      found.set(owner.pool.name, { address: { family, value }, other: other.owner });
    };
    // of those that begin before an interval, the one that ends last; of those that begin after it, the one that begins first
    sweep(intervals, ({ last }) => last, recordOverlap);
    sweep(intervals.reverse(), ({ first }) => -first, recordOverlap);
  }
  return found;
}

function intervalsOf(owner: SegmentPool, family: Family): Interval[] {
  return owner.pool.subnets.flatMap(({ cidr, requestable: { ranges } }) => {
    const [first] = ranges;
    if (cidr.family !== family || first === undefined) return [];
    const told =
      ranges.length <= MAX_RANGES ? ranges : [{ first: first.first, last: ranges.at(-1)?.last ?? first.last }];
    return told.map((range) => ({ ...range, owner }));
  });
}

/**
 * Shows each interval the one that reaches farthest of those before it in other address spaces.
 * @param reachOf how far an interval reaches towards those after it
 */
function sweep(
  intervals: readonly Interval[],
  reachOf: (interval: Interval) => bigint,
  visit: (interval: Interval, farthest: Interval) => void,
): void {
  let farthestOfAll: Interval | undefined;
  /** The best of other address spaces than that of `best`. */
  let farthestOfOthers: Interval | undefined;
  const reaches = (one: Interval, other: Interval | undefined) => other === undefined || reachOf(one) > reachOf(other);
  for (const interval of intervals) {
    const isOfBest = farthestOfAll !== undefined && spaceOf(interval) === spaceOf(farthestOfAll);
    const farthest = isOfBest ? farthestOfOthers : farthestOfAll;
    if (farthest !== undefined) visit(interval, farthest);
    if (reaches(interval, farthestOfAll)) {
      if (!isOfBest) farthestOfOthers = farthestOfAll;
      farthestOfAll = interval;
    } else if (!isOfBest && reaches(interval, farthestOfOthers)) farthestOfOthers = interval;
  }
}

function spaceOf({ owner }: Interval): string {
  return owner.pool.addressSpace;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * As users read it. A pool of another namespace is not named: its name tells that namespace.
 * @param nadNamespace that of the reader
 */
export function describeOverlap(
  segment: string,
  { address, other }: SegmentOverlap,
  nadNamespace: string | undefined,
): string {
  const { name, addressSpace } = other.pool;
  const isOwn = nadNamespace !== undefined && other.nadNamespace === nadNamespace;
  const who = isOwn ? `AddressPool ${name} (address space ${addressSpace})` : 'another AddressPool';
  return (
    `addresses from ${formatAddress(address)} on can be leased twice on ${segment}: ${who} has them in an address space of its own. ` +
    'Write one addressSpace into the NADs of both networks, or other addresses'
  );
}
