import { type LeaseRecord, readLease } from '../addressing/lease/lease.js';
import type { ObjectChange } from '../kube/informer.js';
import type { LeaseStore } from './lease-store.js';

/** A watch that lags and may deliver an event twice, as an informer does. */
export class LaggingWatch {
  readonly #store: LeaseStore;
  readonly #cache = new Map<string, LeaseRecord>();
  #handler: (change: ObjectChange<LeaseRecord>) => void = () => undefined;
  #place = 0;
  #hasSynced = false;

  constructor(store: LeaseStore) {
    this.#store = store;
    this.relist();
  }

  /** The first list is delivered by {@link onChange}. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get lag(): number {
    return this.#store.log.length - this.#place;
  }

  onChange(handler: (change: ObjectChange<LeaseRecord>) => void): void {
    this.#handler = handler;
    this.#hasSynced = false;
    for (const object of this.#cache.values()) handler({ type: 'added', object });
    this.#hasSynced = true;
  }

  /** Delivers the next events. */
  advance(events = Number.POSITIVE_INFINITY): void {
    for (let n = 0; n < events && this.lag > 0; n++) {
      const { type, object } = this.#store.log[this.#place++]!;
      if (type === 'DELETED') this.#remove(object.metadata.name);
      else this.#set(readLease(object));
    }
  }

  /** Lists again after a lost watch. Leases that were created and deleted in between are never seen. */
  relist(): void {
    this.#place = this.#store.log.length;
    for (const name of [...this.#cache.keys()]) if (!this.#store.leases.has(name)) this.#remove(name);
    for (const lease of this.#store.leases.values()) this.#set(readLease(lease));
  }

  /** Delivers an earlier event again, unless the lease was deleted since. */
  redeliver(index: number): void {
    const event = this.#store.log[index % Math.max(1, this.#place)];
    if (event === undefined || event.type === 'DELETED' || this.#place === 0) return;
    const known = this.#cache.get(event.object.metadata.name);
    if (known?.metadata.uid !== event.object.metadata.uid) return;
    this.#handler({ type: 'changed', object: readLease(event.object) });
  }

  #set(object: LeaseRecord): void {
    const before = this.#cache.get(object.metadata.name);
    if (before?.metadata.resourceVersion === object.metadata.resourceVersion) return;
    this.#cache.set(object.metadata.name, object);
    const isSame = before?.metadata.uid === object.metadata.uid;
    if (before !== undefined && !isSame) this.#handler({ type: 'removed', object: before, before });
    this.#handler({ type: isSame ? 'changed' : 'added', object });
  }

  #remove(name: string): void {
    const before = this.#cache.get(name);
    this.#cache.delete(name);
    if (before !== undefined) this.#handler({ type: 'removed', object: before, before });
  }
}
