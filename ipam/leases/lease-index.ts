import { QuarantineIndex } from '../../addressing/lease/lease-quarantine.js';
import { type LeaseRecord, isReservation, stateOf } from '../../addressing/lease/lease.js';

/**
 * Leases by name, pool, owner, claim and MAC address. It stores references to records that the informer's cache holds anyway, and uses
 * their strings as keys, because every word counts with 200,000 leases.
 */
export class LeaseIndex {
  readonly #byName = new Map<string, LeaseRecord>();
  readonly #byPool = new Map<string, Set<LeaseRecord>>();
  /** By UID of the pod. */
  readonly #byPod = new RecordsByKey();
  /** By namespace, then by name. */
  readonly #byClaim = new Map<string, RecordsByKey>();
  /** Released and quarantined leases. */
  readonly #expiring = new Set<LeaseRecord>();
  protected readonly quarantines = new QuarantineIndex();
  /** Leases that are not held, which may be sticky, and all reservations. */
  readonly #byMac = new RecordsByKey();

  get size(): number {
    return this.#byName.size;
  }

  get(name: string): LeaseRecord | undefined {
    return this.#byName.get(name);
  }

  all(): Iterable<LeaseRecord> {
    return this.#byName.values();
  }

  ofPool(pool: string): Iterable<LeaseRecord> {
    return this.#byPool.get(pool) ?? NONE;
  }

  /** The leases of a pod's UID, in any state. */
  ofPod(uid: string): readonly LeaseRecord[] {
    return this.#byPod.get(uid);
  }

  /** The leases of all claims that have or had this name, in any state. */
  ofClaim(namespace: string, name: string): readonly LeaseRecord[] {
    return this.#byClaim.get(namespace)?.get(name) ?? [];
  }

  /** Leases that end by themselves: released and quarantined ones. */
  expiring(): Iterable<LeaseRecord> {
    return this.#expiring.values();
  }

  protected ofMac(mac: string): readonly LeaseRecord[] {
    return this.#byMac.get(mac);
  }

  protected add(record: LeaseRecord): void {
    const { owner, pool } = record;
    this.#byName.set(record.metadata.name, record);
    const ofPool = this.#byPool.get(pool) ?? new Set();
    this.#byPool.set(pool, ofPool.add(record));
    if (owner?.kind === 'Pod') this.#byPod.add(owner.uid, record);
    if (owner?.kind === 'IPAMClaim') {
      const ofNamespace = this.#byClaim.get(owner.namespace) ?? new RecordsByKey();
      ofNamespace.add(owner.name, record);
      this.#byClaim.set(owner.namespace, ofNamespace);
    }
    const state = stateOf(record);
    if (state === 'released' || state === 'quarantined') this.#expiring.add(record);
    this.quarantines.add(record);
    if (record.mac !== undefined && (state !== 'held' || isReservation(record))) this.#byMac.add(record.mac, record);
  }

  /** @param record the same object that was added */
  protected delete(record: LeaseRecord): void {
    const { owner, pool, mac } = record;
    this.#byName.delete(record.metadata.name);
    const ofPool = this.#byPool.get(pool);
    ofPool?.delete(record);
    if (ofPool?.size === 0) this.#byPool.delete(pool);
    if (owner?.kind === 'Pod') this.#byPod.delete(owner.uid, record);
    if (owner?.kind === 'IPAMClaim') {
      const ofNamespace = this.#byClaim.get(owner.namespace);
      ofNamespace?.delete(owner.name, record);
      if (ofNamespace?.isEmpty) this.#byClaim.delete(owner.namespace);
    }
    this.#expiring.delete(record);
    this.quarantines.delete(record);
    if (mac !== undefined) this.#byMac.delete(mac, record);
  }
}

const NONE: ReadonlySet<LeaseRecord> = new Set();

/** Records by a key that rarely has more than one. Only keys with several records have an array. */
class RecordsByKey {
  readonly #found = new Map<string, LeaseRecord | LeaseRecord[]>();

  get isEmpty(): boolean {
    return this.#found.size === 0;
  }

  get(key: string): readonly LeaseRecord[] {
    const found = this.#found.get(key);
    if (found === undefined) return [];
    return Array.isArray(found) ? [...found] : [found];
  }

  add(key: string, record: LeaseRecord): void {
    const found = this.#found.get(key);
    if (found === undefined) this.#found.set(key, record);
    else if (Array.isArray(found)) found.push(record);
    else this.#found.set(key, [found, record]);
  }

  delete(key: string, record: LeaseRecord): void {
    const found = this.#found.get(key);
    if (Array.isArray(found)) {
      const left = found.filter((each) => each !== record);
      if (left.length > 0) this.#found.set(key, left);
      else this.#found.delete(key);
    } else if (found === record) this.#found.delete(key);
  }
}
