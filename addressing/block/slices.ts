import { BITS, type Family } from '../address/address.js';
import { type Range, RangeSet, lastIndexWhere } from '../address/ranges.js';
import { type Cidr, firstOf, lastOf, networkOf, rangeOf } from '../address/cidr.js';
import { type Pool, addressesOf } from '../pool/pool.js';
import type { Subnet } from '../pool/subnet.js';

/** The slices of one subnet. A subnet that is smaller than a block is one slice. */
interface SlicedSubnet {
  readonly cidr: Cidr;
  readonly prefixLength: number;
  readonly hostBits: bigint;
  /** The bases, without host bits, of the slices that have open addresses. */
  readonly numbers: RangeSet;
}

/**
 * The aligned slices of a pool that contain open addresses, of one family. Blocks are made from them. Memory grows with the pool's
 * ranges, never with its size.
 */
export class Slices {
  readonly family: Family;
  readonly #subnets: readonly SlicedSubnet[];
  readonly #open: RangeSet;
  /** The number of open addresses before each range. */
  readonly #before: readonly bigint[];

  constructor(pool: Pool, family: Family) {
    this.family = family;
    this.#subnets = pool.subnets
      .filter(({ cidr }) => cidr.family === family)
      .map((subnet) => sliceSubnet(subnet, pool.blockSize[family]))
      .sort((a, b) => (a.cidr.base < b.cidr.base ? -1 : 1));
    this.#open = addressesOf(pool, family, 'open');
    let sum = 0n;
    this.#before = this.#open.ranges.map(({ first, last }) => {
      const before = sum;
      sum += last - first + 1n;
      return before;
    });
  }

  /** The open addresses of the pool. */
  get open(): RangeSet {
    return this.#open;
  }

  get count(): bigint {
    return this.#subnets.reduce((sum, { numbers }) => sum + numbers.size, 0n);
  }

  /** Returns the slice that contains an address, if any. */
  sliceOf(value: bigint): Cidr | undefined {
    const address = { family: this.family, value };
    for (const { cidr, prefixLength, hostBits, numbers } of this.#subnets) {
      if (value < firstOf(cidr) || value > lastOf(cidr)) continue;
      return numbers.has(value >> hostBits) ? networkOf(address, prefixLength) : undefined;
    }
    return undefined;
  }

  /** True if the pool has exactly this slice. */
  has({ family, base, prefixLength }: Cidr): boolean {
    return family === this.family && this.sliceOf(base)?.prefixLength === prefixLength;
  }

  /** Counts the open addresses from `first` to `last`, both included. O(log n) in the ranges. */
  countOpen({ first, last }: Range): bigint {
    return this.#openUpTo(last) - this.#openUpTo(first - 1n);
  }

  /**
   * Yields the slices in order. There can be too many to iterate over all of them.
   * @param without a slice with an address of these is left out; one range can contain very many slices
   */
  *all(without = RangeSet.EMPTY): Iterable<Cidr> {
    for (const { cidr, prefixLength, hostBits, numbers } of this.#subnets) {
      const { ranges } = without.intersect(RangeSet.of([rangeOf(cidr)]));
      const others = ranges.map(({ first, last }) => ({ first: first >> hostBits, last: last >> hostBits }));
      for (const { first, last } of numbers.subtract(RangeSet.of(others)).ranges) {
        for (let number = first; number <= last; number++) {
          yield { family: this.family, base: number << hostBits, prefixLength };
        }
      }
    }
  }

  /** Counts the open addresses up to the value, included. */
  #openUpTo(value: bigint): bigint {
    const { ranges } = this.#open;
    const index = lastIndexWhere(ranges, ({ first }) => first <= value);
    const [range, before] = [ranges[index], this.#before[index]];
    if (range === undefined || before === undefined) return 0n;
    return before + (value < range.last ? value : range.last) - range.first + 1n;
  }
}

function sliceSubnet({ cidr, open }: Subnet, blockSize: number): SlicedSubnet {
  const prefixLength = Math.max(blockSize, cidr.prefixLength);
  const hostBits = BigInt(BITS[cidr.family] - prefixLength);
  const numbers = open.ranges.map(({ first, last }) => ({ first: first >> hostBits, last: last >> hostBits }));
  return { cidr, prefixLength, hostBits, numbers: RangeSet.of(numbers) };
}
