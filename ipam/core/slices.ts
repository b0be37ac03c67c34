import { BITS, type Family } from './address.js';
import { type Cidr, firstOf, lastOf, networkOf } from './cidr.js';
import { type Pool, addressesOf } from './pool.js';
import { type Range, RangeSet } from './ranges.js';
import type { Subnet } from './subnet.js';

/** Slices of one subnet. A subnet that is smaller than a slice is one. */
interface SlicedSubnet {
  readonly cidr: Cidr;
  readonly prefixLength: number;
  readonly hostBits: bigint;
  /** Which slices have open addresses: their bases without host bits. */
  readonly numbers: RangeSet;
}

/**
 * The aligned slices of a pool, of one family, that have an address which anybody may have: what nodes are lent. Its cost is that of the
 * pool's ranges, never of its size.
 */
export class Slices {
  readonly family: Family;
  readonly #subnets: readonly SlicedSubnet[];
  readonly #open: RangeSet;
  /** How many open addresses lie before each range. */
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

  /** The addresses that anybody may have. */
  get open(): RangeSet {
    return this.#open;
  }

  get count(): bigint {
    return this.#subnets.reduce((sum, { numbers }) => sum + numbers.size, 0n);
  }

  /** The slice of an address; undefined where it lies in none. */
  sliceOf(value: bigint): Cidr | undefined {
    const address = { family: this.family, value };
    for (const { cidr, prefixLength, hostBits, numbers } of this.#subnets) {
      if (value < firstOf(cidr) || value > lastOf(cidr)) continue;
      return numbers.has(value >> hostBits) ? networkOf(address, prefixLength) : undefined;
    }
    return undefined;
  }

  /** Whether the pool has this very slice. */
  has({ family, base, prefixLength }: Cidr): boolean {
    return family === this.family && this.sliceOf(base)?.prefixLength === prefixLength;
  }

  /** How many addresses from `first` to `last`, both included, anybody may have; in O(log n) of the ranges. */
  countOpen({ first, last }: Range): bigint {
    return this.#openUpTo(last) - this.#openUpTo(first - 1n);
  }

  /** All slices, in order: there may be more than anybody can count, so stop early. */
  *all(): Iterable<Cidr> {
    for (const { prefixLength, hostBits, numbers } of this.#subnets) {
      for (const { first, last } of numbers.ranges) {
        for (let number = first; number <= last; number++) {
          yield { family: this.family, base: number << hostBits, prefixLength };
        }
      }
    }
  }

  /** How many open addresses there are up to the value, included. */
  #openUpTo(value: bigint): bigint {
    const { ranges } = this.#open;
    let [low, high] = [0, ranges.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const range = ranges[middle];
      if (range !== undefined && range.first <= value) low = middle + 1;
      else high = middle;
    }
    const [range, before] = [ranges[low - 1], this.#before[low - 1]];
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
