import { type LeaseRecord, readLease } from '../lease.js';
import type { LeaseServer } from '../../../test/lease-server.js';

/** A process's cache of leases, as of the events that it has read. */
export class LeaseReader {
  readonly #server: LeaseServer;
  readonly #records = new Map<string, LeaseRecord>();
  #seen = 0;

  constructor(server: LeaseServer) {
    this.#server = server;
  }

  /** @param count the number of events to read; default: all */
  read(count = Infinity): void {
    const end = Math.min(this.#server.log.length, this.#seen + count);
    for (const event of this.#server.log.slice(this.#seen, end)) {
      if (event.gone) this.#records.delete(event.name);
      else this.#records.set(event.lease.metadata.name, readLease(event.lease));
    }
    this.#seen = end;
  }

  get(name: string): LeaseRecord | undefined {
    return this.#records.get(name);
  }

  list(): LeaseRecord[] {
    return [...this.#records.values()];
  }
}
