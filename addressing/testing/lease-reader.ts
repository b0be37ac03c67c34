import { withCoolingStart } from '../lease/cooling-start.js';
import { type LeaseRecord, readLease } from '../lease/lease.js';
import type { LeaseServer } from '../../test/lease-server.js';

/** A process's cache of leases, as of the events that it has read. */
export class LeaseReader {
  /** By how much the wall clock of the process was set. */
  setMs = 0;
  readonly #server: LeaseServer;
  readonly #now: () => number;
  readonly #records = new Map<string, LeaseRecord>();
  #seen = 0;

  /** @param now the monotonic clock */
  constructor(server: LeaseServer, now: () => number) {
    this.#server = server;
    this.#now = now;
  }

  /** @param count the number of events to read; default: all */
  read(count = Infinity): void {
    const end = Math.min(this.#server.log.length, this.#seen + count);
    for (const event of this.#server.log.slice(this.#seen, end)) {
      if (event.type === 'DELETED') this.#records.delete(event.object.metadata.name);
      else this.#set(readLease(event.object));
    }
    this.#seen = end;
  }

  /** Lists again after a lost watch: events in between are never seen. */
  relist(): void {
    for (const name of this.#records.keys()) if (!this.#server.leases.has(name)) this.#records.delete(name);
    for (const lease of this.#server.leases.values()) this.#set(readLease(lease));
    this.#seen = this.#server.log.length;
  }

  #set(record: LeaseRecord): void {
    const { name } = record.metadata;
    const known = this.#records.get(name);
    this.#records.set(name, withCoolingStart(record, { known, hasSynced: true, now: this.#now() }));
  }

  get(name: string): LeaseRecord | undefined {
    return this.#records.get(name);
  }

  list(): LeaseRecord[] {
    return [...this.#records.values()];
  }
}
