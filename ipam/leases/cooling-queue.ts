import type { CoolingLease, CoolingSummary } from '../core/allocator.js';
import { type LeaseRecord, type LeaseTimes, expiresAt, isSticky, timesWhenExhausted } from '../core/lease.js';
import { CoolingHeap } from './cooling-heap.js';

/** Released leases by when they have cooled down, those that wait for their MAC addresses for themselves. */
export class CoolingQueue {
  readonly #times: LeaseTimes;
  readonly #plain = new CoolingHeap();
  readonly #kept = new CoolingHeap();

  constructor(times: LeaseTimes, leases: Iterable<LeaseRecord>) {
    const { cooldownMs, stickyMs, retainsClaims = false } = times;
    this.#times = { cooldownMs, stickyMs, retainsClaims };
    for (const lease of leases) this.add(lease);
  }

  isFor({ cooldownMs, stickyMs, retainsClaims = false }: LeaseTimes): boolean {
    const times = this.#times;
    return cooldownMs === times.cooldownMs && stickyMs === times.stickyMs && retainsClaims === times.retainsClaims;
  }

  add(lease: LeaseRecord): void {
    // one that is being deleted can be had by nobody
    if (lease.metadata.deletionTimestamp !== undefined) return;
    this.#orderOf(lease).add({ lease, at: expiresAt(lease, timesWhenExhausted(this.#times)) });
  }

  /** @param lease the very one that was added; any other is ignored */
  delete(lease: LeaseRecord): void {
    this.#orderOf(lease).delete(lease);
  }

  /** @param isPending somebody is taking it: it is passed over */
  peek(isPending: (lease: LeaseRecord) => boolean): CoolingSummary {
    const first: CoolingLease | undefined = this.#plain.first(isPending);
    const kept: CoolingLease | undefined = this.#kept.first(isPending);
    return {
      count: this.#plain.size + this.#kept.size,
      ...(first !== undefined && { first }),
      ...(kept !== undefined && { kept }),
    };
  }

  #orderOf(lease: LeaseRecord): CoolingHeap {
    return isSticky(lease, this.#times) ? this.#kept : this.#plain;
  }
}
