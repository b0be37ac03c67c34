import { BITS, type Family } from '../../addressing/address/address.js';
import { type Cidr, rangeOf } from '../../addressing/address/cidr.js';
import { type RangeSet, toSafeNumber } from '../../addressing/address/ranges.js';
import type { AddressSpace } from '../../addressing/allocator/address-space.js';
import { Slices } from '../../addressing/block/slices.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { UnlentSlice } from './observed-pool.js';

/** The part of an address space that is used here. */
type OccupiedAddresses = Pick<AddressSpace, 'occupiedIn' | 'onChange'>;

/** How many slices are compared to find the partly used slice with most free addresses. */
const MAX_COMPARED_SLICES = 65_536;

/** Counts the occupied addresses of each slice of a pool. Slices without occupied addresses need no memory. */
export class SliceOccupancy {
  readonly pool: Pool;
  readonly slices: Readonly<Record<Family, Slices>>;
  readonly #space: OccupiedAddresses;
  /** By first address of the slice. */
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

  /** Unsubscribes from the address space. */
  stop(): void {
    this.#end();
  }

  get total(): bigint {
    return this.slices[4].count + this.slices[6].count;
  }

  /** The number of slices without a free address. */
  get full(): number {
    return this.#full;
  }

  /** The number of free addresses in any CIDR that any claim or pod may get, capped at 2^53 - 1. */
  freeIn(cidr: Cidr): number {
    const occupied = this.slices[cidr.family].has(cidr) ? this.#occupiedOf(cidr) : this.#countIn(cidr);
    return this.sizeOf(cidr) - occupied;
  }

  /** The number of addresses that any claim or pod may get, free or not; capped. */
  sizeOf(cidr: Cidr): number {
    return toSafeNumber(this.slices[cidr.family].countOpen(rangeOf(cidr)));
  }

  /** Whether the CIDR is a slice that may be assigned. */
  canLend(cidr: Cidr): boolean {
    const slices = this.slices[cidr.family];
    // a node with the only slice would keep the whole pool from other nodes
    return slices.count >= 2n && slices.has(cidr);
  }

  /** The slices that may be assigned, best first: unused whole slices in order, then others by number of free addresses. */
  *unlent(family: Family, lent: RangeSet): Iterable<UnlentSlice> {
    const slices = this.slices[family];
    if (slices.count < 2n) return;
    // a slice of a smaller subnet has fewer addresses
    const most = toSafeNumber(1n << BigInt(BITS[family] - this.pool.blockSize[family]));
    const others: UnlentSlice[] = [];
    let compared = 0;
    for (const cidr of slices.all(lent)) {
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

/** The slices of each pool by its current spec, computed on first use. */
export class PoolSlices {
  readonly #book: Pick<LeaseBook, 'space' | 'dropUnusedSpace'>;
  readonly #occupancies = new Map<string, SliceOccupancy>();

  constructor(book: Pick<LeaseBook, 'space' | 'dropUnusedSpace'>) {
    this.#book = book;
  }

  /** @param pool from the directory, compared by identity */
  of(pool: Pool): SliceOccupancy {
    const known = this.#occupancies.get(pool.name);
    if (known?.pool === pool) return known;
    this.forget(pool.name);
    const occupancy = new SliceOccupancy(pool, this.#book.space(pool.addressSpace));
    this.#occupancies.set(pool.name, occupancy);
    return occupancy;
  }

  forget(name: string): void {
    const known = this.#occupancies.get(name);
    if (known === undefined) return;
    known.stop();
    this.#occupancies.delete(name);
    this.#book.dropUnusedSpace(known.pool.addressSpace);
  }
}
