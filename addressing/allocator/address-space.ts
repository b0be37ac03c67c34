import type { Address, Family } from '../address/address.js';
import { OccupiedSet } from './occupied-set.js';
import { type Pool, addressesOf } from '../pool/pool.js';
import { type Range, RangeSet } from '../address/ranges.js';
import { Rotation, VacatedQueue } from './rotation.js';

/** How many vacated addresses of a family are remembered. Older ones count as never used. */
const MAX_VACATED = 65_536;

/** The addresses of a pool that are lent to nodes. Compared by identity: a change is a new object. */
export type LentAddresses = Readonly<Record<Family, RangeSet>>;

/** Called when an address becomes occupied, or free again. */
type OccupancyHandler = (address: Address, isOccupied: boolean) => void;

/**
 * The scope in which an address is allocated at most once. Pools of one space may overlap: an occupied address is occupied for all of
 * them. Memory grows with the addresses in use, never with the size of pools.
 */
export class AddressSpace {
  readonly #halves: Readonly<Record<Family, FamilyAddressSpace>>;
  readonly #handlers = new Set<OccupancyHandler>();
  #hadPool = false;

  /** @param remembered how many vacated addresses of a family are reused only after all others */
  constructor(remembered = MAX_VACATED) {
    const tell = (address: Address, isOccupied: boolean) => {
      for (const handler of this.#handlers) handler(address, isOccupied);
    };
    this.#halves = {
      4: new FamilyAddressSpace(remembered, (value, isOccupied) => tell({ family: 4, value }, isOccupied)),
      6: new FamilyAddressSpace(remembered, (value, isOccupied) => tell({ family: 6, value }, isOccupied)),
    };
  }

  /** Calls the handler synchronously with each change. @returns a function that removes the handler */
  onChange(handler: OccupancyHandler): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  /** Adds or changes a pool. Occupied addresses stay occupied, inside the pool or not. */
  setPool(pool: Pool): void {
    this.#hadPool = true;
    this.#halves[4].setPool(pool.name, addressesOf(pool, 4, 'open'));
    this.#halves[6].setPool(pool.name, addressesOf(pool, 6, 'open'));
  }

  /** @param name may be of a pool that was never set: a follower only sees leases */
  removePool(name: string): void {
    this.#hadPool = true;
    this.#halves[4].removePool(name);
    this.#halves[6].removePool(name);
  }

  /** Whether its pools have been removed, and no address is occupied. It still knows which addresses to reuse last, but for no pool. */
  get isUnused(): boolean {
    return this.#hadPool && this.#handlers.size === 0 && this.#halves[4].isUnused && this.#halves[6].isUnused;
  }

  /** Makes {@link next} return a lent address only if no other address of the pool is free. */
  setLent(pool: string, lent: LentAddresses): void {
    this.#halves[4].setLent(pool, lent[4]);
    this.#halves[6].setLent(pool, lent[6]);
  }

  /** Marks an address as occupied. No effect if it is occupied already. */
  occupy({ family, value }: Address): void {
    this.#halves[family].occupy(value);
  }

  /** Frees an address. It is reused after all addresses that were not used recently, and after those vacated earlier. */
  vacate({ family, value }: Address): void {
    this.#halves[family].vacate(value);
  }

  isOccupied({ family, value }: Address): boolean {
    return this.#halves[family].isOccupied(value);
  }

  /** The occupied addresses of a range, in order. Time grows with the occupied and recently vacated addresses in the range. */
  occupiedIn(family: Family, range: Range): Iterable<bigint> {
    return this.#halves[family].occupiedIn(range);
  }

  /**
   * Continues after the address that was leased last before a restart, so that recently freed addresses are not reused at once.
   * No effect after the first {@link next} for the pool.
   * @param at when the address was leased, in milliseconds since the epoch; the latest lease of several calls wins
   */
  resume(pool: string, { family, value }: Address, at: number): void {
    this.#halves[family].rotationOf(pool)?.resume(value, at);
  }

  /** The next free open address of a pool: the same one until it is occupied. Undefined if the pool is exhausted. */
  next(pool: string, family: Family): Address | undefined {
    const half = this.#halves[family];
    return address(family, half.unlentOf(pool)?.next() ?? half.rotationOf(pool)?.next());
  }

  /** Returns what {@link next} would return, without side effects. */
  peek(pool: string, family: Family): Address | undefined {
    const half = this.#halves[family];
    return address(family, half.unlentOf(pool)?.peek() ?? half.rotationOf(pool)?.peek());
  }

  /** True if a part of the pool is lent and the rest is exhausted. */
  isUnlentExhausted(pool: string, family: Family): boolean {
    return this.#halves[family].unlentOf(pool)?.free === 0n;
  }

  /**
   * A random free open address, for agents that pick concurrently without coordination.
   * @param random returns a number from 0 (included) to 1 (excluded)
   */
  random(pool: string, family: Family, random: () => number): Address | undefined {
    return address(family, this.#halves[family].rotationOf(pool)?.random(random));
  }

  /** How many addresses {@link next} can return. */
  free(pool: string, family: Family): bigint {
    return this.#halves[family].rotationOf(pool)?.free ?? 0n;
  }
}

/** The addresses of one family in an address space. */
class FamilyAddressSpace {
  /** Occupied, or recently vacated. */
  readonly #taken = new OccupiedSet();
  readonly #vacated: VacatedQueue;
  /** By pool. Pools with the same addresses share one: a thousand namespaces may derive pools from equal NADs. */
  readonly #ofPool = new Map<string, SharedRotation>();
  /** By the text of the ranges. */
  readonly #shared = new Map<string, SharedRotation>();
  /** By pool. */
  readonly #lent = new Map<string, LentState>();
  readonly #changed: (value: bigint, isOccupied: boolean) => void;

  constructor(remembered: number, changed: (value: bigint, isOccupied: boolean) => void) {
    this.#vacated = new VacatedQueue(remembered);
    this.#changed = changed;
  }

  get isUnused(): boolean {
    return this.#ofPool.size === 0 && this.#taken.size === this.#vacated.size;
  }

  rotationOf(pool: string): Rotation | undefined {
    return this.#ofPool.get(pool)?.rotation;
  }

  setPool(name: string, open: RangeSet): void {
    const before = this.#ofPool.get(name);
    const key = open.ranges.map(({ first, last }) => `${first}-${last}`).join(',');
    if (before?.key === key) return;
    this.removePool(name);
    if (key === '') return;
    const known = this.#shared.get(key);
    const shared = known ?? { key, open, rotation: this.#makeRotation(open, before?.rotation), poolCount: 0 };
    shared.poolCount++;
    this.#shared.set(key, shared);
    this.#ofPool.set(name, shared);
  }

  removePool(name: string): void {
    const shared = this.#ofPool.get(name);
    if (shared === undefined) return;
    this.#ofPool.delete(name);
    delete this.#lent.get(name)?.unlent;
    shared.poolCount--;
    if (shared.poolCount === 0) this.#shared.delete(shared.key);
  }

  setLent(pool: string, lent: RangeSet): void {
    const before = this.#lent.get(pool);
    if ((before?.lent ?? RangeSet.EMPTY) === lent) return;
    if (lent.isEmpty) this.#lent.delete(pool);
    else this.#lent.set(pool, { lent, ...(before?.unlent && { previousRotation: before.unlent }) });
  }

  /** The rotation over the pool's addresses that are not lent; undefined if none is lent. Built on demand, because blocks change by the hundred. */
  unlentOf(pool: string): Rotation | undefined {
    const part = this.#lent.get(pool);
    const shared = part && this.#ofPool.get(pool);
    if (part === undefined || shared === undefined) return undefined;
    part.unlent ??= this.#makeRotation(shared.open.subtract(part.lent), part.previousRotation ?? shared.rotation);
    return part.unlent;
  }

  occupy(value: bigint): void {
    if (this.#vacated.delete(value)) {
      for (const rotation of this.#rotations()) rotation.noteReoccupied(value);
    } else if (this.#taken.add(value)) {
      for (const rotation of this.#rotations()) rotation.noteOccupied(value);
    } else return;
    this.#changed(value, true);
  }

  vacate(value: bigint): void {
    if (!this.isOccupied(value)) return;
    const forgotten = this.#vacated.add(value);
    for (const rotation of this.#rotations()) rotation.noteVacated(value);
    if (forgotten !== undefined) {
      this.#taken.delete(forgotten);
      for (const rotation of this.#rotations()) rotation.noteForgotten(forgotten);
    }
    this.#changed(value, false);
  }

  isOccupied(value: bigint): boolean {
    return this.#taken.has(value) && !this.#vacated.has(value);
  }

  *occupiedIn(range: Range): Iterable<bigint> {
    for (const { first, last } of this.#taken.runsIn(range.first, range.last)) {
      for (let value = first; value <= last; value++) if (!this.#vacated.has(value)) yield value;
    }
  }

  *#rotations(): Iterable<Rotation> {
    for (const { rotation } of this.#shared.values()) yield rotation;
    for (const { unlent } of this.#lent.values()) if (unlent !== undefined) yield unlent;
  }

  #makeRotation(open: RangeSet, before: Rotation | undefined): Rotation {
    const rotation = new Rotation(open, { occupied: this.#taken, vacated: this.#vacated });
    if (before !== undefined) rotation.continueFrom(before);
    return rotation;
  }
}

interface SharedRotation {
  readonly key: string;
  readonly open: RangeSet;
  readonly rotation: Rotation;
  /** How many pools use it. */
  poolCount: number;
}

interface LentState {
  readonly lent: RangeSet;
  /** The rotation over the addresses that are not lent; absent until it is needed. */
  unlent?: Rotation;
  /** The rotation from which the next one continues. */
  readonly previousRotation?: Rotation;
}

function address(family: Family, value: bigint | undefined): Address | undefined {
  return value === undefined ? undefined : { family, value };
}

/** Address spaces by name. Tenants may name ever new ones, so a space is forgotten when its pools are removed and no address is occupied. */
export class AddressSpaces {
  readonly #spaces = new Map<string, AddressSpace>();
  readonly #remembered: number | undefined;

  /** @param remembered as of {@link AddressSpace} */
  constructor(remembered?: number) {
    this.#remembered = remembered;
  }

  /** Returns the space, which is made if it is not known. */
  of(name: string): AddressSpace {
    const space = this.#spaces.get(name) ?? new AddressSpace(this.#remembered);
    this.#spaces.set(name, space);
    return space;
  }

  isOccupied(name: string, address: Address): boolean {
    return this.#spaces.get(name)?.isOccupied(address) === true;
  }

  vacate(name: string, address: Address): void {
    this.#spaces.get(name)?.vacate(address);
    this.dropUnused(name);
  }

  removePool(name: string, pool: string): void {
    this.#spaces.get(name)?.removePool(pool);
    this.dropUnused(name);
  }

  /** Call it after a handler of changes has ended. */
  dropUnused(name: string): void {
    if (this.#spaces.get(name)?.isUnused === true) this.#spaces.delete(name);
  }
}
