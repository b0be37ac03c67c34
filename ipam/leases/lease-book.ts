import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Clock } from '../../kube/clock.js';
import type { Informer } from '../../kube/informers/informer.js';
import { type MutationChange, MutationCache } from '../../kube/informers/mutation-cache.js';
import { type AddressSpace, AddressSpaces, type LentAddresses } from '../../addressing/allocator/address-space.js';
import { type Address, FAMILIES } from '../../addressing/address/address.js';
import type { SpaceView } from '../../addressing/allocator/allocator.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import type { QuarantinedByMac } from '../../addressing/lease/lease-quarantine.js';
import { withCoolingStart } from '../../addressing/lease/cooling-start.js';
import { type LeaseRecord, isSticky, readLease } from '../../addressing/lease/lease.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { CoolingQueues, poolFamilyKey } from './cooling-queues.js';
import { LeaseIndex } from './lease-index.js';

export type LeaseChange = MutationChange<LeaseRecord>;

/** The address of one family that was leased last from a pool. */
interface LatestLease {
  readonly address: Address;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * All leases as this process knows them: the events of the watch, and its own writes since. Addresses with a lease, a pending write or a restore hold
 * are occupied in their address space.
 */
export class LeaseBook extends LeaseIndex {
  readonly #mutations = new MutationCache<LeaseRecord>({
    get: (name) => this.get(name),
    set: (version, known) => this.#store(version, known),
    delete: (known) => this.#remove(known),
  });
  readonly #spaces = new AddressSpaces();
  readonly #pools = new Map<string, Pool>();
  /** The names of leases that a pending write creates or changes. */
  readonly #pending = new Set<string>();
  /** The names of leases whose addresses are kept for claims that lost their lease. */
  readonly #restoreHolds = new Set<string>();
  /** The names of leases that this process created and the watch has not shown yet, by UID. */
  readonly #unseen = new Map<string, string>();
  /** By pool and family. */
  readonly #newest = new Map<string, LatestLease>();
  readonly #cooling = new CoolingQueues();
  readonly #givenUp: ((addressSpace: string, address: Address) => void)[] = [];
  #observation: (() => { hasSynced: boolean; now: number }) | undefined;
  #lentOf: ((pool: string) => LentAddresses) | undefined;

  constructor(pools: Iterable<Pool> = []) {
    super();
    for (const pool of pools) this.setPool(pool);
  }

  /** Follows the watch, and counts cool-downs by the clock. Objects that are in its cache already are added. */
  attach(
    informer: Pick<Informer<AddressLease, LeaseRecord>, 'hasSynced' | 'onChange'>,
    clock: Pick<Clock, 'now'>,
  ): void {
    this.#observation = () => ({ hasSynced: informer.hasSynced, now: clock.now() });
    informer.onChange((change) => {
      this.#unseen.delete(change.object.metadata.uid);
      this.#mutations.observe(change);
    });
  }

  /** Calls the handler synchronously with each change. Handlers only enqueue. */
  onChange(handler: (change: LeaseChange) => void): void {
    this.#mutations.onChange(handler);
  }

  /** Calls the handler when an address becomes free without a change of a lease: a pending write failed, or a restore hold ended. */
  onAddressFreed(handler: (addressSpace: string, address: Address) => void): void {
    this.#givenUp.push(handler);
  }

  /** Makes {@link view} use lent addresses only if nothing else is free. @param lentOf must return the same object until it changes */
  preferUnlent(lentOf: (pool: string) => LentAddresses): void {
    this.#lentOf = lentOf;
  }

  /**
   * Records the answer to a write of this process. It is visible immediately.
   * @throws {TypeError} if Holdfast cannot have made the object
   */
  recordWrite(lease: AddressLease): void {
    const record = readLease(lease);
    const { name, uid } = record.metadata;
    const isUnseen = this.get(name)?.metadata.uid !== uid;
    if (this.#mutations.wrote(record) && isUnseen) this.#unseen.set(uid, name);
  }

  /** Records that a lease is gone: this process deleted it, or found that it does not exist. */
  forget(name: string, uid: string): void {
    this.#unseen.delete(uid);
    this.#mutations.forget(name, uid);
  }

  /**
   * Marks an address as being written. Call it synchronously after the address was chosen, so that no other worker chooses it too.
   * @returns false if another write is pending
   */
  markPending(addressSpace: string, address: Address): boolean {
    const name = leaseName(addressSpace, address);
    if (this.#pending.has(name)) return false;
    this.#pending.add(name);
    this.space(addressSpace).occupy(address);
    return true;
  }

  /** The write has been answered and told ({@link recordWrite}), or was given up. */
  clearPending(addressSpace: string, address: Address): void {
    const name = leaseName(addressSpace, address);
    if (!this.#pending.delete(name) || this.get(name) !== undefined) return;
    this.#giveUp(name, addressSpace, address);
  }

  /** Marks an address as occupied for a claim that lost its lease. The caller decides who may request it. */
  addRestoreHold(addressSpace: string, address: Address): void {
    this.#restoreHolds.add(leaseName(addressSpace, address));
    this.space(addressSpace).occupy(address);
  }

  /** Ends {@link addRestoreHold}: the address is not kept any more, or the claim has its lease again. */
  removeRestoreHold(addressSpace: string, address: Address): void {
    const name = leaseName(addressSpace, address);
    if (this.#restoreHolds.delete(name)) this.#giveUp(name, addressSpace, address);
  }

  /** The leases of this claim, by its UID, in any state. */
  ofExactClaim({ metadata: { namespace = '', name, uid } }: Pick<IPAMClaim, 'metadata'>): readonly LeaseRecord[] {
    return this.ofClaim(namespace, name).filter(({ owner }) => owner?.uid === uid);
  }

  quarantined(pool: string): QuarantinedByMac {
    return this.quarantines.ofPool(pool);
  }

  /** Leases that this process created and the watch has not shown. One that stays here was deleted while no watch ran. */
  unseen(): readonly LeaseRecord[] {
    return [...this.#unseen].flatMap(([uid, name]) => {
      const record = this.get(name);
      return record?.metadata.uid === uid ? [record] : [];
    });
  }

  space(name: string): AddressSpace {
    return this.#spaces.of(name);
  }

  /** Call it after a handler of changes of the space has ended. */
  dropUnusedSpace(name: string): void {
    this.#spaces.dropUnused(name);
  }

  setPool(pool: Pool): void {
    const before = this.#pools.get(pool.name);
    if (before === pool) return;
    if (before !== undefined && before.addressSpace !== pool.addressSpace)
      this.#spaces.removePool(before.addressSpace, before.name);
    this.#pools.set(pool.name, pool);
    const space = this.space(pool.addressSpace);
    space.setPool(pool);
    for (const family of pool.families) {
      const key = poolFamilyKey(pool.name, family);
      const newest = this.#newest.get(key);
      if (newest !== undefined) space.resume(pool.name, newest.address, newest.at);
    }
    this.#cooling.forget(pool);
  }

  /** Removes a pool, which only a leader may have used. Its leases stay. */
  removePool(name: string, addressSpace: string): void {
    const used = this.#pools.get(name);
    this.#pools.delete(name);
    if (used !== undefined) this.#cooling.forget(used);
    for (const space of new Set([addressSpace, used?.addressSpace ?? addressSpace]))
      this.#spaces.removePool(space, name);
    for (const family of FAMILIES) this.#newest.delete(poolFamilyKey(name, family));
  }

  /** Returns the view of a pool for {@link findCandidates}. Adds or updates the pool. */
  view(pool: Pool): SpaceView {
    this.setPool(pool);
    const { addressSpace } = pool;
    const space = this.space(addressSpace);
    if (this.#lentOf !== undefined) space.setLent(pool.name, this.#lentOf(pool.name));
    return {
      space,
      leaseAt: (address) => this.get(leaseName(addressSpace, address)),
      isPending: (address) => this.#pending.has(leaseName(addressSpace, address)),
      stickyLeases: (family, mac, times) =>
        this.ofMac(mac.toLowerCase())
          .filter((lease) => lease.pool === pool.name && lease.addressSpace === addressSpace)
          .filter((lease) => lease.address.family === family && isSticky(lease, times)),
      quarantined: (family) => this.quarantines.countOpen(pool, family),
      cooling: (family, times) => {
        const isSkipped = ({ metadata: { name } }: LeaseRecord) =>
          this.#pending.has(name) || this.#restoreHolds.has(name);
        return this.#cooling.peek(pool, family, { times, leases: this.ofPool(pool.name), isSkipped });
      },
    };
  }

  #store(version: LeaseRecord, known: LeaseRecord | undefined): LeaseRecord {
    const record = this.#observation ? withCoolingStart(version, { known, ...this.#observation() }) : version;
    if (known !== undefined) this.#unlist(known);
    this.add(record);
    this.#cooling.add(record, this.#pools.get(record.pool));
    if (known?.metadata.uid === record.metadata.uid) return record;
    this.space(record.addressSpace).occupy(record.address);
    this.#noteNewest(record);
    return record;
  }

  #remove(known: LeaseRecord): void {
    this.#unlist(known);
    this.#vacate(known.metadata.name, known.addressSpace, known.address);
  }

  #giveUp(name: string, addressSpace: string, address: Address): void {
    this.#vacate(name, addressSpace, address);
    for (const handler of this.#givenUp) handler(addressSpace, address);
  }

  #vacate(name: string, addressSpace: string, address: Address): void {
    if (this.get(name) !== undefined || this.#pending.has(name) || this.#restoreHolds.has(name)) return;
    this.#spaces.vacate(addressSpace, address);
  }

  #unlist(record: LeaseRecord): void {
    this.delete(record);
    this.#cooling.delete(record);
  }

  #noteNewest({ metadata, address, addressSpace, pool }: LeaseRecord): void {
    const at = Date.parse(metadata.creationTimestamp ?? '');
    const key = poolFamilyKey(pool, address.family);
    const known = this.#newest.get(key);
    if (Number.isNaN(at) || (known !== undefined && at < known.at)) return;
    this.#newest.set(key, { address, at });
    this.space(addressSpace).resume(pool, address, at);
  }
}
