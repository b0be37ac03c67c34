import { type Range, type RangeSet, lastIndexWhere } from '../address/ranges.js';
import type { OccupiedSet } from './occupied-set.js';

/** How many random draws may hit a used value before the next free value after the last draw is returned. */
const MAX_DRAWS = 8;
const LIMB_BITS = 32n;
const LIMB = 2 ** 32;

interface RotationRange extends Range {
  /** Infinity if the size is not an exact number: so many values are never used. */
  readonly size: number;
  /** How many of its values are occupied or recently vacated. */
  usedCount: number;
}

/** The occupied and vacated values of an address space when a rotation is made. */
interface Occupancy {
  /** The occupied values, and those in `vacated`. */
  readonly occupied: OccupiedSet;
  readonly vacated: VacatedQueue;
}

/** Hands out the open values in turn: first those that were not used recently, then the vacated ones, oldest first. */
export class Rotation {
  readonly #ranges: RotationRange[];
  readonly #size: bigint;
  readonly #occupied: OccupiedSet;
  readonly #vacated = new VacatedQueue();
  #usedCount = 0;
  /** The search begins here. */
  #cursor = 0n;
  /** Until a value was chosen here, {@link resume} says where to begin. */
  #hasChosen = false;
  #resumedAt = Number.NEGATIVE_INFINITY;

  constructor(open: RangeSet, { occupied, vacated }: Occupancy) {
    this.#occupied = occupied;
    this.#size = open.size;
    this.#ranges = open.ranges.map(({ first, last }) => {
      const size = Number(last - first) + 1;
      const usedCount = occupied.countIn(first, last);
      this.#usedCount += usedCount;
      return { first, last, size: Number.isSafeInteger(size) ? size : Number.POSITIVE_INFINITY, usedCount };
    });
    for (const value of vacated.values()) if (open.has(value)) this.#vacated.add(value);
  }

  /** The number of values that are not occupied, including the recently vacated ones. */
  get free(): bigint {
    return this.#size - BigInt(this.#usedCount) + BigInt(this.#vacated.size);
  }

  /** Continues at the position of an earlier rotation of the same pool. */
  continueFrom(earlier: Rotation): void {
    this.#cursor = earlier.#cursor;
    this.#hasChosen = earlier.#hasChosen;
    this.#resumedAt = earlier.#resumedAt;
  }

  /** @param at when the value was leased. The latest call wins; no call has an effect after a value was chosen here */
  resume(value: bigint, at: number): void {
    if (this.#hasChosen || at < this.#resumedAt) return;
    this.#cursor = at === this.#resumedAt && this.#cursor > value ? this.#cursor : value;
    this.#resumedAt = at;
  }

  /** Returns the same value until it is occupied. */
  next(): bigint | undefined {
    const found = this.peek();
    if (found === undefined || this.#areAllUsed) return found;
    this.#cursor = found;
    this.#hasChosen = true;
    return found;
  }

  /** Returns what {@link next} would return, without side effects. */
  peek(): bigint | undefined {
    return this.#areAllUsed ? this.#vacated.oldest() : this.#nextFrom(this.#cursor);
  }

  random(random: () => number): bigint | undefined {
    if (this.#areAllUsed) return this.#vacated.pick(random);
    let drawn = this.#draw(random);
    for (let draws = 1; draws < MAX_DRAWS && this.#occupied.has(drawn); draws++) drawn = this.#draw(random);
    return this.#nextFrom(drawn);
  }

  /** The value was free and not recently vacated. */
  noteOccupied(value: bigint): void {
    this.#count(value, 1);
  }

  /** The value was recently vacated. */
  noteReoccupied(value: bigint): void {
    this.#vacated.delete(value);
  }

  /** The value was occupied. */
  noteVacated(value: bigint): void {
    if (this.#rangeOf(value) !== undefined) this.#vacated.add(value);
  }

  /** The value was vacated so long ago that it counts as never used. */
  noteForgotten(value: bigint): void {
    this.#vacated.delete(value);
    this.#count(value, -1);
  }

  get #areAllUsed(): boolean {
    return BigInt(this.#usedCount) >= this.#size;
  }

  #count(value: bigint, by: 1 | -1): void {
    const range = this.#rangeOf(value);
    if (range === undefined) return;
    range.usedCount += by;
    this.#usedCount += by;
  }

  #rangeOf(value: bigint): RotationRange | undefined {
    const range = this.#ranges[this.#firstEndingAtOrAfter(value)];
    return range !== undefined && range.first <= value ? range : undefined;
  }

  #firstEndingAtOrAfter(value: bigint): number {
    return lastIndexWhere(this.#ranges, ({ last }) => last < value) + 1;
  }

  #nextFrom(start: bigint): bigint | undefined {
    const index = this.#firstEndingAtOrAfter(start);
    return this.#search(start, index, this.#ranges.length) ?? this.#search(0n, 0, index + 1);
  }

  /** Returns the first free value at or after `start` in the ranges from `index` to `end`, `end` excluded. */
  #search(start: bigint, index: number, end: number): bigint | undefined {
    for (let each = index; each < end; each++) {
      const range = this.#ranges[each];
      if (range === undefined || range.usedCount >= range.size) continue;
      const { first, last } = range;
      const found = this.#occupied.firstFree(start > first ? start : first, last);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Returns any of the values, used or not, with about equal probability. */
  #draw(random: () => number): bigint {
    let index = 0n;
    for (let reach = 1n; reach < this.#size; reach <<= LIMB_BITS) {
      index = (index << LIMB_BITS) | BigInt(Math.floor(random() * LIMB));
    }
    index %= this.#size;
    for (const { first, last } of this.#ranges) {
      if (index <= last - first) return first + index;
      index -= last - first + 1n;
    }
    return 0n;
  }
}

/** How many stale entries a small queue may have before it is rebuilt. */
const STALE_ENTRIES_ALLOWED = 64;

/** The vacated values, oldest first. All operations are O(1), amortised. */
export class VacatedQueue {
  readonly #limit: number;
  /** The index of each value in the queue. Entries at other indexes are stale. */
  readonly #indexes = new Map<bigint, number>();
  #queue: bigint[] = [];
  /** All entries before this index are stale. */
  #head = 0;

  /** @param limit how many values are remembered; the oldest are forgotten first */
  constructor(limit = Number.POSITIVE_INFINITY) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#indexes.size;
  }

  has(value: bigint): boolean {
    return this.#indexes.has(value);
  }

  /** Adds a value as the newest one. @returns the oldest value if it is forgotten because of the limit */
  add(value: bigint): bigint | undefined {
    this.#indexes.set(value, this.#queue.length);
    this.#queue.push(value);
    this.#compact();
    if (this.#indexes.size <= this.#limit) return undefined;
    const forgotten = this.oldest();
    if (forgotten !== undefined) this.delete(forgotten);
    return forgotten;
  }

  delete(value: bigint): boolean {
    const known = this.#indexes.delete(value);
    if (known) this.#compact();
    return known;
  }

  oldest(): bigint | undefined {
    if (this.size === 0) return undefined;
    while (!this.#isLive(this.#head)) this.#head++;
    return this.#queue[this.#head];
  }

  /** Returns a random value of about the older half, so that concurrent callers rarely pick the same one. */
  pick(random: () => number): bigint | undefined {
    const oldest = this.oldest();
    if (oldest === undefined) return undefined;
    const span = Math.ceil((this.#queue.length - this.#head) / 2);
    for (let index = this.#head + Math.floor(random() * span); index < this.#queue.length; index++) {
      if (this.#isLive(index)) return this.#queue[index];
    }
    return oldest;
  }

  /** Yields the values, oldest first. */
  *values(): Iterable<bigint> {
    for (const [index, value] of this.#queue.entries()) if (this.#indexes.get(value) === index) yield value;
  }

  #isLive(index: number): boolean {
    const value = this.#queue[index];
    return value !== undefined && this.#indexes.get(value) === index;
  }

  #compact(): void {
    if (this.#queue.length <= 2 * this.size + STALE_ENTRIES_ALLOWED) return;
    this.#queue = [...this.values()];
    this.#head = 0;
    this.#queue.forEach((value, index) => this.#indexes.set(value, index));
  }
}
