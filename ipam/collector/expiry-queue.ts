import type { PoolDirectory } from '../../addressing/directory/directory.js';
import { coolingStart } from '../../addressing/lease/cooling-start.js';
import { type LeaseRules, REUSE_MS, leaseTimesOf, minCooldownMs } from '../../addressing/lease/lease-times.js';
import {
  type LeaseRecord,
  type LeaseTimes,
  expiresAt,
  isReservation,
  mayExpire,
  stateOf,
} from '../../addressing/lease/lease.js';
import { CoolingHeap } from '../leases/cooling-heap.js';
import type { LeaseBook, LeaseChange } from '../leases/lease-book.js';

export interface ExpiryQueueDeps extends ExcessRules {
  readonly book: Pick<LeaseBook, 'expiring' | 'get'>;
  readonly timesOf: LeaseTimesLookup;
}

/** The released and quarantined leases by the time from which they may expire. */
export class ExpiryQueue {
  readonly #deps: ExpiryQueueDeps;
  #heap = new CoolingHeap();
  #timesOf: LeaseTimesLookup;

  constructor(deps: ExpiryQueueDeps) {
    this.#deps = deps;
    this.#timesOf = deps.timesOf;
  }

  /** Reads all leases, because the times of a pool may have changed; in short steps, because there can be very many. */
  *rebuild(): Generator<undefined, void> {
    const leases = [...this.#deps.book.expiring()];
    this.#heap = new CoolingHeap();
    this.#timesOf = yield* timesWithoutExcess(leases, this.#deps.timesOf, this.#deps);
    for (const lease of leases) {
      yield;
      this.add(lease);
    }
  }

  observe({ before, after }: LeaseChange): void {
    if (before !== undefined) this.#heap.delete(before);
    if (after !== undefined) this.add(after);
  }

  /** Adds a lease if it has not changed meanwhile and will expire. */
  add(lease: LeaseRecord): void {
    const times = this.#timesOf(lease);
    const isCurrent = this.#deps.book.get(lease.metadata.name) === lease;
    // one that is being deleted already has no time
    if (times === undefined || !isCurrent || lease.metadata.deletionTimestamp !== undefined) return;
    const cooledAt = expiresAt(lease, times) + (isOfPodOnNode(lease) ? REUSE_MS : 0);
    if (cooledAt !== Infinity) this.#heap.add({ lease, cooledAt });
  }

  /** Removes and returns leases that may expire, at most `limit`. */
  take(now: number, limit: number): LeaseRecord[] {
    const due: LeaseRecord[] = [];
    const later: LeaseRecord[] = [];
    for (let first = this.#heap.first(); due.length < limit && first !== undefined; first = this.#heap.first()) {
      const { lease, cooledAt } = first;
      if (cooledAt > now) break;
      this.#heap.delete(lease);
      const times = this.#timesOf(lease);
      if (times !== undefined && mayExpire(lease, times, now)) due.push(lease);
      else later.push(lease);
    }
    // only now: as long as its old entry is in the heap, a lease that is added again is found at its old time
    for (const lease of later) this.add(lease);
    return due;
  }

  /** When the next lease may expire, in the clock's milliseconds; Infinity if there is none. */
  get nextAt(): number {
    return this.#heap.first()?.cooledAt ?? Infinity;
  }
}

function isOfPodOnNode({ owner, node }: LeaseRecord): boolean {
  return owner?.kind === 'Pod' && node !== undefined;
}

/** Released leases that a derived pool keeps. A quota bounds the claims of a tenant, but not how often they are deleted and created again. */
export const MAX_RELEASED_LEASES = 1_024;

interface ExcessRules {
  /** NADs made the pool, so a tenant decides how long its leases stay. */
  readonly isDerived: (pool: string) => boolean;
  /** No address may be used again earlier, because an agent may still answer with it. */
  readonly minCooldownMs: number;
}

/**
 * Returns the times of leases, in short steps. The oldest released leases beyond the limit of a derived pool only cool down for the minimum time.
 */
export function* timesWithoutExcess(
  leases: readonly LeaseRecord[],
  timesOf: LeaseTimesLookup,
  { isDerived, minCooldownMs }: ExcessRules,
): Generator<undefined, LeaseTimesLookup> {
  const released = new Map<string, LeaseRecord[]>();
  for (const lease of leases) {
    yield;
    if (stateOf(lease) !== 'released' || isReservation(lease)) continue;
    const ofPool = released.get(lease.pool);
    if (ofPool === undefined) released.set(lease.pool, [lease]);
    else ofPool.push(lease);
  }
  const excess = new Set<string>();
  for (const [pool, ofPool] of released) {
    if (ofPool.length <= MAX_RELEASED_LEASES || !isDerived(pool)) continue;
    yield;
    ofPool.sort((a, b) => coolingStart(a) - coolingStart(b));
    for (const { metadata } of ofPool.slice(0, -MAX_RELEASED_LEASES)) excess.add(metadata.uid);
  }
  return (lease) => {
    const times = timesOf(lease);
    return times !== undefined && excess.has(lease.metadata.uid) ? { cooldownMs: minCooldownMs, stickyMs: 0 } : times;
  };
}

/** Returns the times of a lease; undefined if they are unknown, in which case the lease is kept. */
export type LeaseTimesLookup = (lease: LeaseRecord) => LeaseTimes | undefined;

/** Returns a lookup of the times of leases: the minimum if the pool is gone, and none if the pool is invalid, which keeps its leases. */
export function leaseTimesLookup(
  directory: Pick<PoolDirectory, 'pool' | 'stateOf'>,
  rules: LeaseRules,
): LeaseTimesLookup {
  return ({ pool: name }): LeaseTimes | undefined => {
    const pool = directory.pool(name);
    if (pool !== undefined) return leaseTimesOf(pool, rules);
    return directory.stateOf(name) === undefined
      ? { cooldownMs: minCooldownMs(rules.maxStalenessMs), stickyMs: 0 }
      : undefined;
  };
}
