import type { Address, Family } from './address.js';
import { OccupiedSet } from './occupied-set.js';
import { type Pool, addressesOf } from './pool.js';
import { type Range, RangeSet } from './ranges.js';
import { Rotation } from './rotation.js';
import { VacatedQueue } from './vacated-queue.js';

/** Vacated addresses of a family that are kept back; those vacated before count as never used. */
const MAX_VACATED = 65_536;

/** Which addresses of a pool are lent, as a whole: compared by identity. */
export type LentAddresses = Readonly<Record<Family, RangeSet>>;

/** An address is occupied from now on, or is so no longer. */
export type OccupancyHandler = (address: Address, isOccupied: boolean) => void;

/**
 * The addresses among which none is leased twice, whatever pools they are leased from: pools of one space may overlap, and what is
 * occupied is so for all of them. Costs memory by addresses in use, never by the size of pools.
 */
export class AddressSpace {
  readonly #halves: Readonly<Record<Family, FamilyAddressSpace>>;
  readonly #handlers = new Set<OccupancyHandler>();

  /** @param remembered how many vacated addresses of a family are kept back until all others were used */
  constructor(remembered = MAX_VACATED) {
    const tell = (address: Address, isOccupied: boolean) => {
      for (const handler of this.#handlers) handler(address, isOccupied);
    };
    this.#halves = {
      4: new FamilyAddressSpace(remembered, (value, isOccupied) => tell({ family: 4, value }, isOccupied)),
      6: new FamilyAddressSpace(remembered, (value, isOccupied) => tell({ family: 6, value }, isOccupied)),
    };
  }

  /** Called in the turn of the change. @returns ends it */
  onChange(handler: OccupancyHandler): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  /** A pool that is there already is changed; what is occupied stays so, within the pool or not. */
  setPool(pool: Pool): void {
    this.#halves[4].setPool(pool.name, addressesOf(pool, 4, 'open'));
    this.#halves[6].setPool(pool.name, addressesOf(pool, 6, 'open'));
  }

  removePool(name: string): void {
    this.#halves[4].removePool(name);
    this.#halves[6].removePool(name);
  }

  /** {@link next} gives what is lent only when no other address of the pool is free. */
  setLent(pool: string, lent: LentAddresses): void {
    this.#halves[4].setLent(pool, lent[4]);
    this.#halves[6].setLent(pool, lent[6]);
  }

  /** An address that is occupied already stays so. */
  occupy({ family, value }: Address): void {
    this.#halves[family].occupy(value);
  }

  /** It is leased again only after all that were not used lately, and those vacated before it. */
  vacate({ family, value }: Address): void {
    this.#halves[family].vacate(value);
  }

  isOccupied({ family, value }: Address): boolean {
    return this.#halves[family].isOccupied(value);
  }

  /** The occupied addresses of a range, in order; takes time by those that are or were so lately. */
  occupiedIn(family: Family, range: Range): Iterable<bigint> {
    return this.#halves[family].occupiedIn(range);
  }

  /**
   * After a restart, the address that was leased last: what was freed before is not leased again at once. Does nothing once
   * {@link next} has chosen for the pool.
   * @param at when it was leased, in milliseconds since the epoch: of several calls the latest lease counts
   */
  resume(pool: string, { family, value }: Address, at: number): void {
    this.#halves[family].rotationOf(pool)?.resume(value, at);
  }

  /** A free address that anybody may have, the same one until it is occupied; undefined where there is none. */
  next(pool: string, family: Family): Address | undefined {
    const half = this.#halves[family];
    return address(family, half.unlentOf(pool)?.next() ?? half.rotationOf(pool)?.next());
  }

  /** What {@link next} would choose. */
  peek(pool: string, family: Family): Address | undefined {
    const half = this.#halves[family];
    return address(family, half.unlentOf(pool)?.peek() ?? half.rotationOf(pool)?.peek());
  }

  /** Some of the pool is lent, and of the rest nothing is free. */
  isUnlentExhausted(pool: string, family: Family): boolean {
    return this.#halves[family].unlentOf(pool)?.free === 0n;
  }

  /**
   * A free address that anybody may have, for those who pick without asking each other.
   * @param random from 0 to 1, exclusively
   */
  random(pool: string, family: Family, random: () => number): Address | undefined {
    return address(family, this.#halves[family].rotationOf(pool)?.random(random));
  }

  /** How many addresses {@link next} could give. */
  free(pool: string, family: Family): bigint {
    return this.#halves[family].rotationOf(pool)?.free ?? 0n;
  }
}

/** The addresses of one family. */
class FamilyAddressSpace {
  /** In use, or vacated lately. */
  readonly #taken = new OccupiedSet();
  readonly #vacated: VacatedQueue;
  /** By pool. Pools of the same addresses share one: a thousand namespaces may derive theirs from equal NADs. */
  readonly #ofPool = new Map<string, SharedRotation>();
  /** By the text of its ranges. */
  readonly #shared = new Map<string, SharedRotation>();
  /** By pool. */
  readonly #lent = new Map<string, LentState>();
  readonly #changed: (value: bigint, isOccupied: boolean) => void;

  constructor(remembered: number, changed: (value: bigint, isOccupied: boolean) => void) {
    this.#vacated = new VacatedQueue(remembered);
    this.#changed = changed;
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

  /** The pool's addresses that are not lent; undefined where none is. Made when it is asked for: blocks come and go by the hundred. */
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
  /** How many draw from it. */
  poolCount: number;
}

interface LentState {
  readonly lent: RangeSet;
  /** Of the rest; absent until it is asked for. */
  unlent?: Rotation;
  /** Where to go on. */
  readonly previousRotation?: Rotation;
}

function address(family: Family, value: bigint | undefined): Address | undefined {
  return value === undefined ? undefined : { family, value };
}
