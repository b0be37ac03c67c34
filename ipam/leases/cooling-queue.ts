import type { Cooled, Cooling } from '../core/allocator.js';
import { type LeaseRecord, type LeaseTimes, expiresAt, isKept, underPressure } from '../core/lease.js';
import { CoolingOrder } from './cooling-order.js';

/** Released leases by when they have cooled down, those that wait for their MAC addresses for themselves. */
export class CoolingQueue {
  readonly #times: LeaseTimes;
  readonly #plain = new CoolingOrder();
  readonly #kept = new CoolingOrder();

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
    this.#orderOf(lease).add({ lease, at: expiresAt(lease, underPressure(this.#times)) });
  }

  /** @param lease the very one that was added; any other is ignored */
  delete(lease: LeaseRecord): void {
    this.#orderOf(lease).delete(lease);
  }

  /** @param isPending somebody is taking it: it is passed over */
  look(isPending: (lease: LeaseRecord) => boolean): Cooling {
    const first: Cooled | undefined = this.#plain.first(isPending);
    const kept: Cooled | undefined = this.#kept.first(isPending);
    return {
      count: this.#plain.size + this.#kept.size,
      ...(first !== undefined && { first }),
      ...(kept !== undefined && { kept }),
    };
  }

  #orderOf(lease: LeaseRecord): CoolingOrder {
    return isKept(lease, this.#times) ? this.#kept : this.#plain;
  }
}
