import type { AddressLease } from '../../../api/address-lease.js';
import type { KubeObject } from '../../../api/meta.js';
import { AddressSpace } from '../../../ipam/core/address-space.js';
import type { Address, Family } from '../../../ipam/core/address.js';
import { leaseName } from '../../../ipam/core/lease-name.js';
import { type LeaseRecord, isReservation, readLease, stateOf } from '../../../ipam/core/lease.js';
import type { Pool } from '../../../ipam/core/pool.js';
import type { Clock, Random } from '../../../kube/clock.js';
import { abortable } from '../../../kube/abortable.js';
import type { ObjectChange, Informer } from '../../../kube/informer.js';

/** Of a lease of an address space, whoever has it, no more than that its address is taken: there may be very many. */
export interface LeaseSummary extends KubeObject {
  address: Address;
  /** All of it, where it is released, or of the static table. */
  record?: LeaseRecord;
}

/** What follows the leases of an address space; an Informer does. */
export type SpaceInformer = Pick<
  Informer<AddressLease, LeaseSummary>,
  'hasSynced' | 'synced' | 'onChange' | 'start' | 'stop'
>;

export interface SpaceCandidatesDeps {
  /** Makes what follows the leases of the space, when it is needed. */
  readonly open: () => SpaceInformer;
  readonly clock: Clock;
  readonly random: Random;
}

/** An address that was found taken is not tried again for so long; by then the watch shows it, or it is free. */
export const SPACE_TAKEN_TTL_MS = 10_000;

/**
 * Which addresses of an address space may be free: neither leased, as far as the watch has told, nor being tried by this agent. Before the first
 * list it knows next to nothing; whether an address is free, the write decides in any case. Nothing is watched before somebody asks for it.
 */
export class SpaceCandidates {
  readonly #name: string;
  readonly #deps: SpaceCandidatesDeps;
  readonly #space = new AddressSpace();
  readonly #pools = new Map<string, Pool>();
  /** Names of leases that the watch has shown. */
  readonly #leased = new Set<string>();
  /** Those that are released, or of the static table. */
  readonly #whole = new Map<string, LeaseRecord>();
  /** Names of leases of which a write is under way. */
  readonly #tried = new Set<string>();
  /** By name; those that were found taken first come first. */
  readonly #noted = new Map<string, { address: Address; until: number }>();
  #feed: SpaceInformer | undefined;
  /** In the clock's ms. */
  #usedAt = 0;

  /** @param name of the address space */
  constructor(name: string, deps: SpaceCandidatesDeps) {
    this.#name = name;
    this.#deps = deps;
  }

  get hasSynced(): boolean {
    return this.#feed?.hasSynced === true;
  }

  /** Lists the leases of the space and follows them from now on. */
  watch(): SpaceInformer {
    if (this.#feed !== undefined) return this.#feed;
    this.#feed = this.#deps.open();
    this.#feed.onChange((change) => this.#observe(change));
    this.#feed.start();
    return this.#feed;
  }

  /** When somebody last asked, in the clock's ms. */
  get usedAt(): number {
    return this.#usedAt;
  }

  /** Follows the space, and waits for the first list. @throws {Error} where the signal aborts first, or the following ends */
  synced(signal: AbortSignal): Promise<void> {
    return abortable(this.watch().synced(), signal);
  }

  async stop(): Promise<void> {
    await this.#feed?.stop();
  }

  /** To be told of a pool before it is asked about. */
  setPool(pool: Pool): void {
    this.#usedAt = this.#deps.clock.now();
    if (this.#pools.get(pool.name) === pool) return;
    this.#pools.set(pool.name, pool);
    this.#space.setPool(pool);
  }

  /** An address that anybody may have, and that nobody is known to have. It is being tried from now on; {@link settle} must follow. */
  pick(pool: Pool, family: Family): Address | undefined {
    this.#forgetNotes();
    const address = this.#space.random(pool.name, family, this.#deps.random);
    if (address !== undefined) this.try(address);
    return address;
  }

  /** The address is leased, is being tried, or was found taken: there is no use in trying it. */
  isKnown(address: Address): boolean {
    this.#forgetNotes();
    return this.#space.isOccupied(address);
  }

  /** Nobody else of this agent picks it; {@link settle} must follow. @returns false where somebody tries it already */
  try(address: Address): boolean {
    const name = leaseName(this.#name, address);
    if (this.#tried.has(name)) return false;
    this.#tried.add(name);
    this.#space.occupy(address);
    return true;
  }

  /** @param isTaken by whomever */
  settle(address: Address, isTaken: boolean): void {
    const name = leaseName(this.#name, address);
    this.#tried.delete(name);
    this.#noted.delete(name);
    if (isTaken) this.#noted.set(name, { address, until: this.#deps.clock.now() + SPACE_TAKEN_TTL_MS });
    this.#vacate(name, address);
  }

  /** Released leases of the pool that anybody may have in time, and nobody of this agent tries to take; those released first come first. */
  releasedOf(pool: Pool, family: Family): readonly LeaseRecord[] {
    this.#forgetNotes();
    const isOne = (lease: LeaseRecord) => lease.pool === pool.name && lease.address.family === family;
    const found = [...this.#whole.values()].filter(
      (lease) => isOne(lease) && !isReservation(lease) && this.#isLeftAlone(lease),
    );
    return found.sort((a, b) => (a.releasedAt ?? 0) - (b.releasedAt ?? 0));
  }

  /** Leases of the pool with this MAC address that are released, and nobody of this agent tries to take; and those of the static table, in whatever state. */
  stickyFor(pool: Pool, mac: string): readonly LeaseRecord[] {
    this.#forgetNotes();
    const isHere = (lease: LeaseRecord) => isReservation(lease) || this.#isLeftAlone(lease);
    return [...this.#whole.values()].filter((lease) => lease.mac === mac && lease.pool === pool.name && isHere(lease));
  }

  #isLeftAlone({ metadata: { name } }: LeaseRecord): boolean {
    return !this.#tried.has(name) && !this.#noted.has(name);
  }

  #observe({ type, object }: ObjectChange<LeaseSummary>): void {
    const { name } = object.metadata;
    if (type === 'removed') {
      this.#leased.delete(name);
      this.#whole.delete(name);
      this.#vacate(name, object.address);
      return;
    }
    // what the watch shows need not be noted any more
    this.#noted.delete(name);
    this.#leased.add(name);
    this.#space.occupy(object.address);
    if (object.record === undefined) this.#whole.delete(name);
    else this.#whole.set(name, object.record);
  }

  #forgetNotes(): void {
    const now = this.#deps.clock.now();
    for (const [name, { address, until }] of this.#noted) {
      if (until > now) return;
      this.#noted.delete(name);
      this.#vacate(name, address);
    }
  }

  #vacate(name: string, address: Address): void {
    if (!this.#leased.has(name) && !this.#tried.has(name) && !this.#noted.has(name)) this.#space.vacate(address);
  }
}

/** @throws {TypeError} where the object is no lease that Holdfast could have made */
export function transformToLeaseSummary(lease: AddressLease): LeaseSummary {
  const record = readLease(lease);
  const { name, uid } = record.metadata;
  const isAsked = stateOf(record) === 'released' || (isReservation(record) && record.mac !== undefined);
  return { metadata: { name, uid }, address: record.address, ...(isAsked && { record: record }) };
}
