import type { CoolingLease, CoolingSummary } from '../../addressing/allocator/allocator.js';
import {
  type LeaseRecord,
  type LeaseTimes,
  expiresAt,
  isSticky,
  timesWhenExhausted,
} from '../../addressing/lease/lease.js';
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
