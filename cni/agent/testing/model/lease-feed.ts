import type { AddressLease } from '../../../../api/address-lease.js';
import type { KubeObject } from '../../../../api/meta.js';
import type { ObjectChange } from '../../../../kube/informer.js';
import type { WatchSpec } from '../../../../kube/informers.js';
import type { LeaseServer } from '../../../../test/lease-server.js';
import { isSelected } from './lease-api.js';

/** An informer of leases that lists and delivers events on request. */
export class LeaseFeed<S extends KubeObject> {
  hasSynced = false;
  isRunning = false;
  readonly #server: LeaseServer;
  readonly #watched: WatchSpec<AddressLease, S>;
  readonly #cache = new Map<string, S>();
  readonly #handlers: ((change: ObjectChange<S>) => void)[] = [];
  #waiting: (() => void)[] = [];
  #position = 0;

  constructor(server: LeaseServer, watched: WatchSpec<AddressLease, S>) {
    this.#server = server;
    this.#watched = watched;
  }

  start(): void {
    this.isRunning = true;
  }

  stop(): Promise<void> {
    this.isRunning = false;
    return Promise.resolve();
  }

  synced(): Promise<void> {
    return this.hasSynced ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  onChange(handler: (change: ObjectChange<S>) => void): void {
    this.#handlers.push(handler);
    for (const object of this.#cache.values()) handler({ type: 'added', object });
  }

  /** Lists the leases; those that were created and deleted since the last list are never shown. */
  list(): void {
    if (!this.isRunning) return;
    for (const name of [...this.#cache.keys()]) if (!this.#server.leases.has(name)) this.#remove(name);
    for (const lease of this.#server.leases.values()) this.#see(lease);
    this.#position = this.#server.log.length;
    this.hasSynced = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Delivers events. @param count number of events; default: all */
  deliver(count = Number.POSITIVE_INFINITY): void {
    if (!this.isRunning || !this.hasSynced) return;
    const events = this.#server.log.slice(this.#position, this.#position + count);
    this.#position += events.length;
    for (const event of events) {
      if (event.gone) this.#remove(event.name);
      else this.#see(event.lease);
    }
  }

  #see(lease: AddressLease): void {
    const { name, uid } = lease.metadata;
    const { fieldSelector = '', shrink } = this.#watched;
    if (!isSelected(lease, fieldSelector)) {
      this.#remove(name);
      return;
    }
    const before = this.#cache.get(name);
    if (before !== undefined && before.metadata.uid !== uid) this.#remove(name);
    const object = shrink!(structuredClone(lease));
    const known = this.#cache.get(name);
    this.#cache.set(name, object);
    this.#tell(known === undefined ? { type: 'added', object } : { type: 'changed', object, before: known });
  }

  #remove(name: string): void {
    const object = this.#cache.get(name);
    if (!this.#cache.delete(name) || object === undefined) return;
    this.#tell({ type: 'removed', object, before: object });
  }

  #tell(change: ObjectChange<S>): void {
    for (const handler of this.#handlers) handler(change);
  }
}
