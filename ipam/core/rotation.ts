import type { OccupiedSet } from './occupied-set.js';
import type { Range, RangeSet } from './ranges.js';
import { VacatedQueue } from './vacated-queue.js';

/** Draws that may meet a taken value before the next free one after the last draw is good enough. */
const MAX_DRAWS = 8;
const LIMB_BITS = 32n;
const LIMB = 2 ** 32;

interface RotationRange extends Range {
  /** Infinity where it is no exact number: so many are never taken. */
  readonly size: number;
  /** Of its values, how many are taken: in use, or vacated not long ago. */
  taken: number;
}

/** What has to be known about a set's values when a rotation is made. */
export interface Occupancy {
  /** In use, or in `vacated`. */
  readonly occupied: OccupiedSet;
  readonly vacated: VacatedQueue;
}

/** The values that are leased to anybody, each in its turn: first those that were not used lately, then those vacated, oldest first. */
export class Rotation {
  readonly #stretches: RotationRange[];
  readonly #size: bigint;
  readonly #taken: OccupiedSet;
  readonly #vacated = new VacatedQueue();
  #takenCount = 0;
  /** Where the search begins. */
  #cursor = 0n;
  /** Until a value was chosen here, others tell where to begin. */
  #hasChosen = false;
  #resumedAt = Number.NEGATIVE_INFINITY;

  constructor(open: RangeSet, { occupied, vacated }: Occupancy) {
    this.#taken = occupied;
    this.#size = open.size;
    this.#stretches = open.ranges.map(({ first, last }) => {
      const size = Number(last - first) + 1;
      const taken = occupied.countIn(first, last);
      this.#takenCount += taken;
      return { first, last, size: Number.isSafeInteger(size) ? size : Number.POSITIVE_INFINITY, taken };
    });
    for (const value of vacated.values()) if (open.has(value)) this.#vacated.add(value);
  }

  /** How many are not in use, lately vacated ones included. */
  get free(): bigint {
    return this.#size - BigInt(this.#takenCount) + BigInt(this.#vacated.size);
  }

  /** Goes on where an earlier rotation of the same pool is. */
  continueFrom(earlier: Rotation): void {
    this.#cursor = earlier.#cursor;
    this.#hasChosen = earlier.#hasChosen;
    this.#resumedAt = earlier.#resumedAt;
  }

  /** @param at when the value was leased; the latest counts, and none does any more once a value was chosen here */
  resume(value: bigint, at: number): void {
    if (this.#hasChosen || at < this.#resumedAt) return;
    this.#cursor = at === this.#resumedAt && this.#cursor > value ? this.#cursor : value;
    this.#resumedAt = at;
  }

  /** The same one until it is taken. */
  next(): bigint | undefined {
    const found = this.peek();
    if (found === undefined || this.#isUsedUp) return found;
    this.#cursor = found;
    this.#hasChosen = true;
    return found;
  }

  /** What {@link next} would choose. */
  peek(): bigint | undefined {
    return this.#isUsedUp ? this.#vacated.oldest() : this.#nextFrom(this.#cursor);
  }

  random(random: () => number): bigint | undefined {
    if (this.#isUsedUp) return this.#vacated.pick(random);
    let drawn = this.#draw(random);
    for (let draws = 1; draws < MAX_DRAWS && this.#taken.has(drawn); draws++) drawn = this.#draw(random);
    return this.#nextFrom(drawn);
  }

  /** It was free and not lately vacated. */
  noteOccupied(value: bigint): void {
    this.#count(value, 1);
  }

  /** It was lately vacated. */
  noteReoccupied(value: bigint): void {
    this.#vacated.delete(value);
  }

  /** It was in use. */
  noteVacated(value: bigint): void {
    if (this.#stretchOf(value) !== undefined) this.#vacated.add(value);
  }

  /** It was vacated, and that is too long ago to matter. */
  noteForgotten(value: bigint): void {
    this.#vacated.delete(value);
    this.#count(value, -1);
  }

  get #isUsedUp(): boolean {
    return BigInt(this.#takenCount) >= this.#size;
  }

  #count(value: bigint, by: 1 | -1): void {
    const stretch = this.#stretchOf(value);
    if (stretch === undefined) return;
    stretch.taken += by;
    this.#takenCount += by;
  }

  #stretchOf(value: bigint): RotationRange | undefined {
    const stretch = this.#stretches[this.#firstEndingAtOrAfter(value)];
    return stretch !== undefined && stretch.first <= value ? stretch : undefined;
  }

  #firstEndingAtOrAfter(value: bigint): number {
    let low = 0;
    let high = this.#stretches.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const stretch = this.#stretches[middle];
      if (stretch !== undefined && stretch.last < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #nextFrom(start: bigint): bigint | undefined {
    const index = this.#firstEndingAtOrAfter(start);
    return this.#search(start, index, this.#stretches.length) ?? this.#search(0n, 0, index + 1);
  }

  /** The first free value from `start` on in the stretches from `index` on, `end` excluded. */
  #search(start: bigint, index: number, end: number): bigint | undefined {
    for (let each = index; each < end; each++) {
      const stretch = this.#stretches[each];
      if (stretch === undefined || stretch.taken >= stretch.size) continue;
      const { first, last } = stretch;
      const found = this.#taken.firstFree(start > first ? start : first, last);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Any of the values, taken or not, each about as likely. */
  #draw(random: () => number): bigint {
    let index = 0n;
    for (let reach = 1n; reach < this.#size; reach <<= LIMB_BITS) {
      index = (index << LIMB_BITS) | BigInt(Math.floor(random() * LIMB));
    }
    index %= this.#size;
    for (const { first, last } of this.#stretches) {
      if (index <= last - first) return first + index;
      index -= last - first + 1n;
    }
    return 0n;
  }
}
