import type { Clock } from '../../kube/clock.js';
import type { Address } from '../core/address.js';
import type { LeaseBook } from '../leases/lease-book.js';

interface QuarantinedAddress {
  readonly addressSpace: string;
  readonly address: Address;
  /** In ms. */
  readonly until: number;
}

const QUARANTINE_MS = 60_000;

/**
 * Addresses whose lease cannot be read. The lease book has no such lease, so the address stays marked as if a write were pending. The quarantine ends after a
 * while, because no event tells that the lease was repaired or deleted.
 */
export class AddressQuarantine {
  readonly #book: Pick<LeaseBook, 'clearPending'>;
  readonly #clock: Pick<Clock, 'now'>;
  /** The oldest first. */
  #quarantined: readonly QuarantinedAddress[] = [];

  constructor(book: Pick<LeaseBook, 'clearPending'>, clock: Pick<Clock, 'now'>) {
    this.#book = book;
    this.#clock = clock;
  }

  /** Keeps a pending address pending for a while. */
  add(addressSpace: string, address: Address): void {
    this.#quarantined = [...this.#quarantined, { addressSpace, address, until: this.#clock.now() + QUARANTINE_MS }];
  }

  /** Ends quarantines that have lasted long enough. Call it before addresses are picked. */
  liftDue(): void {
    const now = this.#clock.now();
    const due = this.#quarantined.filter(({ until }) => until <= now);
    if (due.length === 0) return;
    this.#quarantined = this.#quarantined.filter(({ until }) => until > now);
    for (const { addressSpace, address } of due) this.#book.clearPending(addressSpace, address);
  }
}
