import type { Clock } from '../../kube/clock.js';
import type { Address } from '../../addressing/address/address.js';
import type { LeaseBook } from '../leases/lease-book.js';

interface UnreadableAddress {
  readonly addressSpace: string;
  readonly address: Address;
  /** In ms. */
  readonly until: number;
}

const RETRY_MS = 60_000;

/**
 * Addresses whose lease cannot be read. The lease book has no such lease, so the address stays marked as if a write were pending. It is tried again
 * after a while, because no event tells that the lease was repaired or deleted.
 */
export class UnreadableAddresses {
  readonly #book: Pick<LeaseBook, 'clearPending'>;
  readonly #clock: Pick<Clock, 'now'>;
  /** The oldest first. */
  #unreadable: readonly UnreadableAddress[] = [];

  constructor(book: Pick<LeaseBook, 'clearPending'>, clock: Pick<Clock, 'now'>) {
    this.#book = book;
    this.#clock = clock;
  }

  /** Keeps a pending address pending for a while. */
  add(addressSpace: string, address: Address): void {
    this.#unreadable = [...this.#unreadable, { addressSpace, address, until: this.#clock.now() + RETRY_MS }];
  }

  /** Frees the addresses to be tried again. Call it before addresses are picked. */
  retryDue(): void {
    const now = this.#clock.now();
    const due = this.#unreadable.filter(({ until }) => until <= now);
    if (due.length === 0) return;
    this.#unreadable = this.#unreadable.filter(({ until }) => until > now);
    for (const { addressSpace, address } of due) this.#book.clearPending(addressSpace, address);
  }
}
