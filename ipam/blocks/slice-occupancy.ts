import type { AddressSpace } from '../core/address-space.js';
import { BITS, type Family } from '../core/address.js';
import { toSafeNumber } from '../core/safe-number.js';
import { type Cidr, rangeOf } from '../core/cidr.js';
import type { Pool } from '../core/pool.js';
import type { RangeSet } from '../core/ranges.js';
import { Slices } from '../core/slices.js';
import type { UnlentSlice } from './observed-pool.js';

/** What of an address space is read here. */
export type OccupiedAddresses = Pick<AddressSpace, 'occupiedIn' | 'onChange'>;

/** Slices of a pool that are compared before the best of those is lent of which addresses are in use. */
const MAX_COMPARED_SLICES = 65_536;

/** How many addresses of each slice of a pool are occupied, change by change; of those alone where any is. */
export class SliceOccupancy {
  readonly pool: Pool;
  readonly slices: Readonly<Record<Family, Slices>>;
  readonly #space: OccupiedAddresses;
  /** By the slice's first address. */
  readonly #occupied: Readonly<Record<Family, Map<bigint, number>>> = { 4: new Map(), 6: new Map() };
  readonly #end: () => void;
  #full = 0;

  constructor(pool: Pool, space: OccupiedAddresses) {
    this.pool = pool;
    this.#space = space;
    this.slices = { 4: new Slices(pool, 4), 6: new Slices(pool, 6) };
    for (const family of pool.families) {
      for (const range of this.slices[family].open.ranges) {
        for (const value of space.occupiedIn(family, range)) this.#count(family, value, 1);
      }
    }
    this.#end = space.onChange(({ family, value }, isOccupied) => {
      if (this.slices[family].open.has(value)) this.#count(family, value, isOccupied ? 1 : -1);
    });
  }

  /** Follows no longer. */
  stop(): void {
    this.#end();
  }

  get total(): bigint {
    return this.slices[4].count + this.slices[6].count;
  }

  /** How many slices have no free address. */
  get full(): number {
    return this.#full;
  }

  /** How many addresses of it anybody may have, and nobody has; of any CIDR, capped at 2^53 - 1. */
  freeIn(cidr: Cidr): number {
    const occupied = this.slices[cidr.family].has(cidr) ? this.#occupiedOf(cidr) : this.#countIn(cidr);
    return this.sizeOf(cidr) - occupied;
  }

  /** How many addresses of it anybody may have, in use or not; capped. */
  sizeOf(cidr: Cidr): number {
    return toSafeNumber(this.slices[cidr.family].countOpen(rangeOf(cidr)));
  }

  /** It is a slice of those that may be lent. */
  canLend(cidr: Cidr): boolean {
    const slices = this.slices[cidr.family];
    // whoever would have all of a pool would keep all others from it
    return slices.count >= 2n && slices.has(cidr);
  }

  /** What may be lent, best first: whole slices that nobody has an address of in order, then others, those with most free addresses first. */
  *unlent(family: Family, lent: RangeSet): Iterable<UnlentSlice> {
    const slices = this.slices[family];
    if (slices.count < 2n) return;
    // none has more: a subnet that is smaller than a slice has less
    const most = toSafeNumber(1n << BigInt(BITS[family] - this.pool.blockSize[family]));
    const others: UnlentSlice[] = [];
    let compared = 0;
    for (const cidr of slices.all()) {
      if (lent.overlaps(rangeOf(cidr))) continue;
      compared++;
      const free = this.freeIn(cidr);
      if (free === most) yield { cidr, free };
      else if (free > 0 && compared <= MAX_COMPARED_SLICES) others.push({ cidr, free });
    }
    yield* others.sort((a, b) => b.free - a.free);
  }

  #count(family: Family, value: bigint, by: 1 | -1): void {
    const slice = this.slices[family].sliceOf(value);
    if (slice === undefined) return;
    const before = this.#occupiedOf(slice);
    const size = this.sizeOf(slice);
    const after = before + by;
    if (after === 0) this.#occupied[family].delete(slice.base);
    else this.#occupied[family].set(slice.base, after);
    if (after === size) this.#full++;
    else if (before === size) this.#full--;
  }

  #occupiedOf({ family, base }: Cidr): number {
    return this.#occupied[family].get(base) ?? 0;
  }

  #countIn(cidr: Cidr): number {
    const { open } = this.slices[cidr.family];
    let count = 0;
    for (const value of this.#space.occupiedIn(cidr.family, rangeOf(cidr))) if (open.has(value)) count++;
    return count;
  }
}
