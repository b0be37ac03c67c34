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
 * Addresses whose lease cannot be read. The book has no such lease, so they are held as if one were being made; not for good, since nobody is told
 * when the lease is mended or deleted.
 */
export class AddressQuarantine {
  readonly #book: Pick<LeaseBook, 'unhold'>;
  readonly #clock: Pick<Clock, 'now'>;
  /** The oldest first. */
  #spoiled: readonly QuarantinedAddress[] = [];

  constructor(book: Pick<LeaseBook, 'unhold'>, clock: Pick<Clock, 'now'>) {
    this.#book = book;
    this.#clock = clock;
  }

  /** An address that is held stays so for a while. */
  add(addressSpace: string, address: Address): void {
    this.#spoiled = [...this.#spoiled, { addressSpace, address, until: this.#clock.now() + QUARANTINE_MS }];
  }

  /** Lets go of those that may be looked at again. To be called before addresses are chosen. */
  liftDue(): void {
    const now = this.#clock.now();
    const due = this.#spoiled.filter(({ until }) => until <= now);
    if (due.length === 0) return;
    this.#spoiled = this.#spoiled.filter(({ until }) => until > now);
    for (const { addressSpace, address } of due) this.#book.unhold(addressSpace, address);
  }
}
