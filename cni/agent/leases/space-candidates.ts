import type { AddressLease } from '../../../api/address-lease.js';
import type { KubeObject } from '../../../api/meta.js';
import { AddressSpace } from '../../../addressing/allocator/address-space.js';
import type { Address, Family } from '../../../addressing/address/address.js';
import { withCoolingStart } from '../../../addressing/lease/cooling-start.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { type LeaseRecord, isReservation, readLease, stateOf } from '../../../addressing/lease/lease.js';
import { type Pool, addressesOf, subnetOf } from '../../../addressing/pool/pool.js';
import type { Clock, Random } from '../../../kube/clock.js';
import { abortable } from '../../../kube/transport/deadline.js';
import type { WatchSpec } from '../../../kube/informers/informers.js';
import type { ObjectChange, Informer } from '../../../kube/informers/informer.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';

/** A lease of any owner. Only its address is kept, because there may be very many. */
interface LeaseSummary extends KubeObject {
  address: Address;
  /** The whole lease, if it is released or a reservation. */
  record?: LeaseRecord;
}

/** The part of an Informer that is used here. */
type SpaceInformer = Pick<Informer<AddressLease, LeaseSummary>, 'hasSynced' | 'synced' | 'onChange' | 'start' | 'stop'>;

interface SpaceCandidatesDeps {
  /** Creates the informer of the address space when it is needed. */
  readonly open: () => SpaceInformer;
  readonly clock: Clock;
  readonly random: Random;
}

/** How long an address that was found taken is not tried again. After this time the watch shows it, or it is free. */
export const SPACE_TAKEN_TTL_MS = 10_000;
/** Addresses without a lease that are kept for the next ADDs. */
export const MAX_UNLEASED = 32;
/** Each agent that watches an address space gets every change in it, so the watch ends even if pods start all the time. */
export const MAX_WATCH_MS = 15 * 60_000;

/**
 * The addresses of an address space that may be free: not leased according to the watch, and not being tried by this agent. Before the
 * first list almost nothing is known. The write decides whether an address is free. The watch starts when random attempts have failed.
 */
export class SpaceCandidates {
  readonly #name: string;
  readonly #deps: SpaceCandidatesDeps;
  readonly #space = new AddressSpace();
  readonly #pools = new Map<string, Pool>();
  /** Names of leases that the watch has shown. */
  readonly #leased = new Set<string>();
  /** Released leases and reservations. */
  readonly #records = new Map<string, LeaseRecord>();
  /** Names of leases that are being written. */
  readonly #tried = new Set<string>();
  /** By name, in the order in which they were found taken. */
  readonly #taken = new Map<string, { address: Address; until: number }>();
  /** By name: addresses that had no lease when they were read, the last one at the end. One that was leased since costs one attempt. */
  readonly #unleased = new Map<string, Address>();
  #informer: SpaceInformer | undefined;
  /** In the clock's ms. */
  #usedAt = 0;
  /** Until then the watch goes on, even if random attempts would succeed. */
  #watchUntil = 0;

  /** @param name of the address space */
  constructor(name: string, deps: SpaceCandidatesDeps) {
    this.#name = name;
    this.#deps = deps;
  }

  get hasSynced(): boolean {
    return this.#informer?.hasSynced === true;
  }

  /** True if no ADD has used it for a long time, or if its watch has run for that long and random attempts would succeed again. */
  get isOver(): boolean {
    const now = this.#deps.clock.now();
    if (now - this.#usedAt >= MAX_WATCH_MS) return true;
    return this.hasSynced && now >= this.#watchUntil && !this.#isCrowded;
  }

  /** Three quarters of a pool are leased: without the watch, random attempts would soon fail, and all leases be listed again. */
  get #isCrowded(): boolean {
    return [...this.#pools.values()].some((pool) =>
      pool.families.some((family) => {
        const { size } = addressesOf(pool, family, 'open');
        return this.#space.free(pool.name, family) * 4n < size;
      }),
    );
  }

  /** Starts the watch and waits for the first list. @throws {Error} if the signal aborts first, or the watch is stopped */
  synced(signal: AbortSignal): Promise<void> {
    return abortable(this.watch().synced(), signal);
  }

  async stop(): Promise<void> {
    await this.#informer?.stop();
  }

  /** Sets a pool. Call it before other methods use the pool. */
  setPool(pool: Pool): void {
    this.#usedAt = this.#deps.clock.now();
    if (this.#pools.get(pool.name) === pool) return;
    this.#pools.set(pool.name, pool);
    this.#space.setPool(pool);
  }

  /** Picks an open address that is not known to be taken, and starts an attempt; {@link settle} must follow. */
  pick(pool: Pool, family: Family): Address | undefined {
    this.#forgetTaken();
    const address = this.#takeUnleased(pool, family) ?? this.#space.random(pool.name, family, this.#deps.random);
    if (address !== undefined) this.try(address);
    return address;
  }

  /** Ends an attempt with an address that has no lease: {@link pick} returns it before others. */
  keepUnleased(address: Address): void {
    this.settle(address, false);
    if (this.#unleased.size >= MAX_UNLEASED) this.#unleased.delete(this.#unleased.keys().next().value ?? '');
    this.#unleased.set(leaseName(this.#name, address), address);
  }

  /** Whether the address is leased, is being tried, or was found taken recently. */
  isKnown(address: Address): boolean {
    this.#forgetTaken();
    return this.#space.isOccupied(address);
  }

  /** Starts an attempt; {@link settle} must follow. @returns false if another attempt is under way */
  try(address: Address): boolean {
    const name = leaseName(this.#name, address);
    if (this.#tried.has(name)) return false;
    this.#tried.add(name);
    this.#space.occupy(address);
    return true;
  }

  /** Ends an attempt. @param isTaken by this pod or another owner */
  settle(address: Address, isTaken: boolean): void {
    const name = leaseName(this.#name, address);
    this.#tried.delete(name);
    this.#taken.delete(name);
    if (isTaken) this.#taken.set(name, { address, until: this.#deps.clock.now() + SPACE_TAKEN_TTL_MS });
    this.#vacate(name, address);
  }

  /** Returns released leases of the pool that are neither reserved nor being tried, the one released first at the beginning. */
  releasedOf(pool: Pool, family: Family): readonly LeaseRecord[] {
    this.#forgetTaken();
    const isOne = (lease: LeaseRecord) => lease.pool === pool.name && lease.address.family === family;
    const found = [...this.#records.values()].filter(
      (lease) => isOne(lease) && !isReservation(lease) && this.#isIdle(lease),
    );
    return found.sort((a, b) => (a.releasedAt ?? 0) - (b.releasedAt ?? 0));
  }

  /** Returns released leases and reservations of the pool with this MAC address, also if another pod of the node has just tried one. */
  stickyFor(pool: Pool, mac: string): readonly LeaseRecord[] {
    return [...this.#records.values()].filter((lease) => lease.mac === mac && lease.pool === pool.name);
  }

  /** Returns the record with the time since which it cools down, as far as the watch has shown it. */
  withCoolingStart(record: LeaseRecord): LeaseRecord {
    const known = this.#records.get(record.metadata.name);
    return withCoolingStart(record, { known, hasSynced: this.hasSynced, now: this.#deps.clock.now() });
  }

  /** Starts the watch. */
  watch(): SpaceInformer {
    if (this.#informer !== undefined) return this.#informer;
    // random, so that agents that began together do not list together again
    this.#watchUntil = this.#deps.clock.now() + MAX_WATCH_MS * (0.75 + this.#deps.random() / 2);
    this.#informer = this.#deps.open();
    this.#informer.onChange((change) => this.#observe(change));
    this.#informer.start();
    return this.#informer;
  }

  /** Removes and returns the address that was read last. */
  #takeUnleased(pool: Pool, family: Family): Address | undefined {
    // the watch knows more
    if (this.hasSynced) this.#unleased.clear();
    for (const [name, address] of [...this.#unleased].reverse()) {
      if (address.family !== family || subnetOf(pool, address)?.open.has(address.value) !== true) continue;
      this.#unleased.delete(name);
      if (!this.#space.isOccupied(address)) return address;
    }
    return undefined;
  }

  #isIdle({ metadata: { name } }: LeaseRecord): boolean {
    return !this.#tried.has(name) && !this.#taken.has(name);
  }

  #observe({ type, object }: ObjectChange<LeaseSummary>): void {
    const { name } = object.metadata;
    if (type === 'removed') {
      this.#leased.delete(name);
      this.#records.delete(name);
      this.#vacate(name, object.address);
      return;
    }
    // the watch shows the lease now
    this.#taken.delete(name);
    this.#leased.add(name);
    this.#space.occupy(object.address);
    if (object.record === undefined) this.#records.delete(name);
    else this.#records.set(name, this.withCoolingStart(object.record));
  }

  #forgetTaken(): void {
    const now = this.#deps.clock.now();
    for (const [name, { address, until }] of this.#taken) {
      if (until > now) return;
      this.#taken.delete(name);
      this.#vacate(name, address);
    }
  }

  #vacate(name: string, address: Address): void {
    if (!this.#leased.has(name) && !this.#tried.has(name) && !this.#taken.has(name)) this.#space.vacate(address);
  }
}

interface CandidateRegistryDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Creates an informer of leases, which is started and stopped here. */
  readonly createInformer: (watched: WatchSpec<AddressLease, LeaseSummary>) => SpaceInformer;
}

/** The candidates of each address space that pods of this node use. */
export class CandidateRegistry {
  readonly #deps: CandidateRegistryDeps;
  readonly #spaces = new Map<string, SpaceCandidates>();

  constructor(deps: CandidateRegistryDeps) {
    this.#deps = deps;
  }

  /** Returns the candidates of the pool's address space, which other pools may share. */
  forPool(pool: Pool): SpaceCandidates {
    const { addressSpace } = pool;
    const space = this.#spaces.get(addressSpace) ?? this.#open(addressSpace);
    space.setPool(pool);
    return space;
  }

  /** Stops the watches of address spaces after a time. The next ADD tries random addresses again. */
  async prune(): Promise<void> {
    const over = [...this.#spaces].filter(([, { isOver }]) => isOver);
    for (const [name] of over) this.#spaces.delete(name);
    await Promise.all(over.map(([, space]) => space.stop()));
  }

  async stop(): Promise<void> {
    const spaces = [...this.#spaces.values()];
    this.#spaces.clear();
    await Promise.all(spaces.map((space) => space.stop()));
  }

  #open(addressSpace: string): SpaceCandidates {
    const { createInformer, clock, random } = this.#deps;
    const fieldSelector = `spec.addressSpace=${addressSpace}`;
    const open = () => createInformer({ resource: ADDRESS_LEASES, fieldSelector, transform: transformToLeaseSummary });
    const space = new SpaceCandidates(addressSpace, { open, clock, random });
    this.#spaces.set(addressSpace, space);
    return space;
  }
}

/** Projects a lease before it is cached. @throws {TypeError} if the object is not a valid lease */
function transformToLeaseSummary(lease: AddressLease): LeaseSummary {
  const record = readLease(lease);
  const { name, uid } = record.metadata;
  const isAsked = stateOf(record) === 'released' || (isReservation(record) && record.mac !== undefined);
  return { metadata: { name, uid }, address: record.address, ...(isAsked && { record: record }) };
}
