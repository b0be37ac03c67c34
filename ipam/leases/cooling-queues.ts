import type { Family } from '../../addressing/address/address.js';
import type { CoolingLease, CoolingSummary } from '../../addressing/allocator/allocator.js';
import {
  type LeaseRecord,
  type LeaseTimes,
  expiresAt,
  isReservation,
  isSticky,
  stateOf,
} from '../../addressing/lease/lease.js';
import { timesWhenExhausted } from '../../addressing/lease/lease-times.js';
import { type Pool, subnetOf } from '../../addressing/pool/pool.js';
import { CoolingHeap } from './cooling-heap.js';

/** Released leases by the end of their cool-down, with sticky leases in a heap of their own. */
export class CoolingQueue {
  readonly #times: LeaseTimes;
  readonly #plain = new CoolingHeap();
  readonly #kept = new CoolingHeap();

  constructor(times: LeaseTimes, leases: Iterable<LeaseRecord>) {
    const { cooldownMs, stickyMs, isStickyForClaims = false } = times;
    this.#times = { cooldownMs, stickyMs, isStickyForClaims };
    for (const lease of leases) this.add(lease);
  }

  isFor({ cooldownMs, stickyMs, isStickyForClaims = false }: LeaseTimes): boolean {
    const times = this.#times;
    return (
      cooldownMs === times.cooldownMs && stickyMs === times.stickyMs && isStickyForClaims === times.isStickyForClaims
    );
  }

  add(lease: LeaseRecord): void {
    // a lease that is being deleted cannot be allocated
    if (lease.metadata.deletionTimestamp !== undefined) return;
    this.#orderOf(lease).add({ lease, cooledAt: expiresAt(lease, timesWhenExhausted(this.#times)) });
  }

  /** @param lease the same object that was added; others are ignored */
  delete(lease: LeaseRecord): void {
    this.#orderOf(lease).delete(lease);
  }

  /** Returns the first lease of both heaps. @param isPending such leases are skipped */
  peek(isPending: (lease: LeaseRecord) => boolean): CoolingSummary {
    const first: CoolingLease | undefined = this.#plain.first(isPending);
    const kept: CoolingLease | undefined = this.#kept.first(isPending);
    return {
      count: this.#plain.size + this.#kept.size,
      ...(first !== undefined && { first }),
      ...(kept !== undefined && { sticky: kept }),
    };
  }

  #orderOf(lease: LeaseRecord): CoolingHeap {
    return isSticky(lease, this.#times) ? this.#kept : this.#plain;
  }
}

/** The leases of a pool, and a rule for the ones that nobody gets. */
interface CoolingSource {
  readonly times: LeaseTimes;
  readonly leases: Iterable<LeaseRecord>;
  readonly isSkipped: (lease: LeaseRecord) => boolean;
}

/** The released open leases of each pool and family. A queue is built when the pool is full for the first time. */
export class CoolingQueues {
  readonly #queues = new Map<string, CoolingQueue>();

  /** @param pool the current pool of the lease; undefined if it is gone */
  add(record: LeaseRecord, pool: Pool | undefined): void {
    if (pool !== undefined && isOpenIn(pool, record)) this.#queueOf(record)?.add(record);
  }

  delete(record: LeaseRecord): void {
    this.#queueOf(record)?.delete(record);
  }

  /** Drops the queues of a pool that was changed or removed. */
  forget({ name, families }: Pool): void {
    for (const family of families) this.#queues.delete(poolFamilyKey(name, family));
  }

  peek(pool: Pool, family: Family, { times, leases, isSkipped }: CoolingSource): CoolingSummary {
    const key = poolFamilyKey(pool.name, family);
    const known = this.#queues.get(key);
    const queue = known?.isFor(times) ? known : new CoolingQueue(times, coolingIn(pool, family, leases));
    this.#queues.set(key, queue);
    return queue.peek(isSkipped);
  }

  #queueOf({ pool, address }: LeaseRecord): CoolingQueue | undefined {
    return this.#queues.size === 0 ? undefined : this.#queues.get(poolFamilyKey(pool, address.family));
  }
}

/** Returns the key of a map by pool and family. */
export function poolFamilyKey(pool: string, family: Family): string {
  return `${family}/${pool}`;
}

function* coolingIn(pool: Pool, family: Family, leases: Iterable<LeaseRecord>): Iterable<LeaseRecord> {
  for (const lease of leases) if (lease.address.family === family && isOpenIn(pool, lease)) yield lease;
}

/** True if the released lease is for an open address of the pool. The pool may have been changed since. */
function isOpenIn(pool: Pool, lease: LeaseRecord): boolean {
  const { address, addressSpace } = lease;
  if (stateOf(lease) !== 'released' || isReservation(lease) || addressSpace !== pool.addressSpace) return false;
  return subnetOf(pool, address)?.open.has(address.value) ?? false;
}
