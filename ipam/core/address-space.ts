import type { Address, Family } from './address.js';
import { OccupiedSet } from './occupied.js';
import { type Pool, addressesOf } from './pool.js';
import type { RangeSet } from './ranges.js';
import { Rotation } from './rotation.js';
import { VacatedOrder } from './vacated.js';

/** Vacated addresses of a family that are kept back; those vacated before count as never used. */
const REMEMBERED = 65_536;

/**
 * The addresses among which none is leased twice, whatever pools they are leased from: pools of one space may overlap, and what is
 * occupied is so for all of them. Costs memory by addresses in use, never by the size of pools.
 */
export class AddressSpace {
  readonly #halves: Readonly<Record<Family, HalfSpace>>;

  /** @param remembered how many vacated addresses of a family are kept back until all others were used */
  constructor(remembered = REMEMBERED) {
    this.#halves = { 4: new HalfSpace(remembered), 6: new HalfSpace(remembered) };
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
    return address(family, this.#halves[family].rotationOf(pool)?.next());
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
class HalfSpace {
  /** In use, or vacated lately. */
  readonly #taken = new OccupiedSet();
  readonly #vacated: VacatedOrder;
  /** By pool. Pools of the same addresses share one: a thousand namespaces may derive theirs from equal NADs. */
  readonly #ofPool = new Map<string, SharedRotation>();
  /** By the text of its ranges. */
  readonly #shared = new Map<string, SharedRotation>();

  constructor(remembered: number) {
    this.#vacated = new VacatedOrder(remembered);
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
    const shared = known ?? { key, rotation: this.#makeRotation(open, before), pools: 0 };
    shared.pools++;
    this.#shared.set(key, shared);
    this.#ofPool.set(name, shared);
  }

  removePool(name: string): void {
    const shared = this.#ofPool.get(name);
    if (shared === undefined) return;
    this.#ofPool.delete(name);
    shared.pools--;
    if (shared.pools === 0) this.#shared.delete(shared.key);
  }

  occupy(value: bigint): void {
    if (this.#vacated.delete(value)) {
      for (const { rotation } of this.#shared.values()) rotation.tookAgain(value);
    } else if (this.#taken.add(value)) {
      for (const { rotation } of this.#shared.values()) rotation.took(value);
    }
  }

  vacate(value: bigint): void {
    if (!this.isOccupied(value)) return;
    const forgotten = this.#vacated.add(value);
    for (const { rotation } of this.#shared.values()) rotation.gaveBack(value);
    if (forgotten === undefined) return;
    this.#taken.delete(forgotten);
    for (const { rotation } of this.#shared.values()) rotation.forgot(forgotten);
  }

  isOccupied(value: bigint): boolean {
    return this.#taken.has(value) && !this.#vacated.has(value);
  }

  #makeRotation(open: RangeSet, before: SharedRotation | undefined): Rotation {
    const rotation = new Rotation(open, { set: this.#taken, vacated: this.#vacated });
    if (before !== undefined) rotation.follow(before.rotation);
    return rotation;
  }
}

interface SharedRotation {
  readonly key: string;
  readonly rotation: Rotation;
  /** How many draw from it. */
  pools: number;
}

function address(family: Family, value: bigint | undefined): Address | undefined {
  return value === undefined ? undefined : { family, value };
}
