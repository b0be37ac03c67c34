import { type Address, type Family, formatAddress } from '../../addressing/address/address.js';
import { type Range, byFirst } from '../../addressing/address/ranges.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import { compiledPool } from '../../addressing/directory/pool-state.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { Clock } from '../../kube/clock.js';
import { runInSlices } from '../../kube/run-in-slices.js';

/** A pool whose addresses are used on a layer-2 segment. */
export interface SegmentPool {
  readonly pool: Pick<Pool, 'name' | 'addressSpace' | 'subnets'>;
  readonly nadNamespace?: string | undefined;
}

/** Another pool may lease the same address on the same segment, because addresses are unique only within an address space. */
interface SegmentOverlap {
  readonly address: Address;
  readonly other: SegmentPool;
}

/** The cost per pool is bounded: a subnet with more ranges counts as one, from the first to the last address. */
const MAX_RANGES = 8;

interface Interval extends Range {
  readonly owner: SegmentPool;
}

/** Finds the pools of one segment that overlap a pool of another address space, by name, in short steps. The cost for n pools is n log n. */
export function* findOverlaps(pools: Iterable<SegmentPool>): Generator<undefined, Map<string, SegmentOverlap>> {
  const found = new Map<string, SegmentOverlap>();
  const all = [...pools];
  const spaces = new Set(all.map(({ pool }) => pool.addressSpace));
  if (spaces.size < 2) return found;
  for (const family of [4, 6] as const) {
    const intervals = all.flatMap((owner) => intervalsOf(owner, family)).sort(byFirst);
    const recordOverlap = ({ owner, first, last }: Interval, other: Interval) => {
      const isShared = other.first <= last && first <= other.last;
      if (!isShared || found.has(owner.pool.name)) return;
      const value = first > other.first ? first : other.first;
      found.set(owner.pool.name, { address: { family, value }, other: other.owner });
    };
    // first the interval that ends last among earlier ones, then the interval that begins first among later ones
    yield* sweep(intervals, ({ last }) => last, recordOverlap);
    yield* sweep(intervals.reverse(), ({ first }) => -first, recordOverlap);
  }
  return found;
}

function intervalsOf(owner: SegmentPool, family: Family): Interval[] {
  return owner.pool.subnets.flatMap(({ cidr, leasable: { ranges } }) => {
    const [first] = ranges;
    if (cidr.family !== family || first === undefined) return [];
    const told =
      ranges.length <= MAX_RANGES ? ranges : [{ first: first.first, last: ranges.at(-1)?.last ?? first.last }];
    return told.map((range) => ({ ...range, owner }));
  });
}

/**
 * Calls `visit` for each interval with the earlier interval of another address space that reaches farthest.
 * @param reachOf how far an interval reaches towards later ones
 */
function* sweep(
  intervals: readonly Interval[],
  reachOf: (interval: Interval) => bigint,
  visit: (interval: Interval, farthest: Interval) => void,
): Generator<undefined, void> {
  let farthestOfAll: Interval | undefined;
  /** The farthest of all address spaces but that of `farthestOfAll`. */
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
    yield;
  }
}

function spaceOf({ owner }: Interval): string {
  return owner.pool.addressSpace;
}

/**
 * Describes an overlap to users. A pool of another namespace is not named, because its name contains that namespace.
 * @param nadNamespace the namespace of the reader
 * @param areAddressesShown false if the reader may see no pools, and so no addresses of others
 */
export function describeOverlap(
  segment: string,
  { address, other }: SegmentOverlap,
  nadNamespace: string | undefined,
  areAddressesShown = true,
): string {
  const { name, addressSpace } = other.pool;
  const isOwn = nadNamespace !== undefined && other.nadNamespace === nadNamespace;
  const who = isOwn ? `AddressPool ${name} (address space ${addressSpace})` : 'another AddressPool';
  const which = isOwn || areAddressesShown ? `Addresses from ${formatAddress(address)} on` : 'Some addresses';
  return (
    `${which} can be leased twice on ${segment}: ${who} has them in another address space. ` +
    'Set the same addressSpace in the NADs of both networks, or use other addresses'
  );
}

/** Minimum time between two comparisons of all segments, however often tenants change their NADs. */
export const COMPARE_INTERVAL_MS = 10_000;

/** Messages about pools that overlap another pool on their layer-2 segment. Follows the directory. */
export class SegmentOverlapTracker {
  readonly #directory: Pick<PoolDirectory, 'poolsBySegment'>;
  readonly #clock: Pick<Clock, 'now' | 'setTimer'>;
  readonly #changed: (pools: readonly string[]) => void;
  #messages: ReadonlyMap<string, string> = new Map();
  /** Ends a comparison that runs, and the time until the next one. */
  #cancel: (() => void) | undefined;
  #isStale = false;

  /** @param changed called with the pools whose message has changed */
  constructor(
    directory: Pick<PoolDirectory, 'poolsBySegment' | 'onChange'>,
    clock: Pick<Clock, 'now' | 'setTimer'>,
    changed: (pools: readonly string[]) => void,
  ) {
    this.#directory = directory;
    this.#clock = clock;
    this.#changed = changed;
    directory.onChange(() => {
      this.#isStale = true;
      if (this.#cancel === undefined) void this.#update();
    });
  }

  messageFor(pool: string): string | undefined {
    return this.#messages.get(pool);
  }

  /** Compares now. A new leader waits for it: what was compared before its caches had synced may be wrong. */
  start(): Promise<void> {
    return this.#update();
  }

  stop(): void {
    this.#cancel?.();
  }

  async #update(): Promise<void> {
    this.#cancel?.();
    this.#isStale = false;
    const abort = new AbortController();
    this.#cancel = () => abort.abort();
    const messages = await runInSlices(this.#compare(), this.#clock, abort.signal);
    if (messages === undefined || abort.signal.aborted) return;
    this.#cancel = this.#clock.setTimer(COMPARE_INTERVAL_MS, () => {
      this.#cancel = undefined;
      if (this.#isStale) void this.#update();
    });
    const before = this.#messages;
    this.#messages = messages;
    const names = new Set([...before.keys(), ...messages.keys()]);
    this.#changed([...names].filter((name) => before.get(name) !== messages.get(name)));
  }

  *#compare(): Generator<undefined, ReadonlyMap<string, string>> {
    const messages = new Map<string, string>();
    for (const [segment, attached] of [...this.#directory.poolsBySegment].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const pools = [...attached].flatMap((each) => {
        const pool = compiledPool(each);
        return pool === undefined ? [] : [{ pool, nadNamespace: each.nadNamespace }];
      });
      const overlaps = yield* findOverlaps(pools);
      for (const { pool, nadNamespace } of pools) {
        const overlap = overlaps.get(pool.name);
        if (overlap === undefined || messages.has(pool.name)) continue;
        messages.set(pool.name, describeOverlap(segment, overlap, nadNamespace));
        yield;
      }
    }
    return messages;
  }
}
