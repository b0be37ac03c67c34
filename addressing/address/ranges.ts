/** Returns the last index for which the test is true, or -1. The test must be true up to some index and false after it. */
export function lastIndexWhere<T>(list: readonly T[], test: (element: T) => boolean): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    // middle is always within the list
    if (test(list[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The numbers from `first` to `last`, both included. */
export interface Range {
  readonly first: bigint;
  readonly last: bigint;
}

/**
 * An immutable set of numbers, stored as sorted ranges with gaps between them. Memory grows with the ranges, never with the numbers.
 * Equal sets have equal ranges.
 */
export class RangeSet {
  static readonly EMPTY = new RangeSet([]);

  readonly ranges: readonly Range[];
  readonly size: bigint;

  private constructor(ranges: readonly Range[]) {
    this.ranges = ranges;
    this.size = ranges.reduce((sum, { first, last }) => sum + last - first + 1n, 0n);
  }

  /** Returns the union of ranges in any order. They may overlap. A range whose last is before its first is empty. */
  static of(ranges: Iterable<Range>): RangeSet {
    const sorted = [...ranges].filter(({ first, last }) => first <= last).sort(byFirst);
    const merged: Range[] = [];
    for (const { first, last } of sorted) {
      const previous = merged.at(-1);
      if (previous === undefined || first > previous.last + 1n) merged.push({ first, last });
      else if (last > previous.last) merged.splice(-1, 1, { first: previous.first, last });
    }
    return merged.length === 0 ? RangeSet.EMPTY : new RangeSet(merged);
  }

  get isEmpty(): boolean {
    return this.ranges.length === 0;
  }

  /** O(log n) in the ranges. */
  has(value: bigint): boolean {
    return this.overlaps({ first: value, last: value });
  }

  /** O(log n) in the ranges. */
  overlaps({ first, last }: Range): boolean {
    const range = this.ranges[lastIndexWhere(this.ranges, (each) => each.first <= last)];
    return range !== undefined && range.last >= first;
  }

  /** Returns the first number that is in both sets. O(n) in the ranges of both. */
  firstShared(other: RangeSet): bigint | undefined {
    for (let i = 0, j = 0; ;) {
      const [a, b] = [this.ranges[i], other.ranges[j]];
      if (a === undefined || b === undefined) return undefined;
      if (a.last < b.first) i += 1;
      else if (b.last < a.first) j += 1;
      else return a.first > b.first ? a.first : b.first;
    }
  }

  union(other: RangeSet): RangeSet {
    return RangeSet.of([...this.ranges, ...other.ranges]);
  }

  intersect(other: RangeSet): RangeSet {
    const common: Range[] = [];
    for (let i = 0, j = 0; ;) {
      const [a, b] = [this.ranges[i], other.ranges[j]];
      if (a === undefined || b === undefined) return RangeSet.of(common);
      common.push({ first: a.first > b.first ? a.first : b.first, last: a.last < b.last ? a.last : b.last });
      if (a.last < b.last) i += 1;
      else j += 1;
    }
  }

  /** Returns the numbers that are not in the other set. */
  subtract(other: RangeSet): RangeSet {
    return this.intersect(other.#outside(this.ranges));
  }

  /** Returns the complement of the set, at least within the bounds of the given sorted ranges. */
  #outside(bounds: readonly Range[]): RangeSet {
    const [lowest, highest] = [bounds[0], bounds.at(-1)];
    if (lowest === undefined || highest === undefined) return RangeSet.EMPTY;
    const gaps: Range[] = [];
    let next = lowest.first;
    for (const { first, last } of this.ranges) {
      gaps.push({ first: next, last: first - 1n });
      next = last + 1n;
    }
    return RangeSet.of([...gaps, { first: next, last: highest.last }]);
  }
}

export function byFirst(a: Range, b: Range): number {
  return a.first < b.first ? -1 : a.first > b.first ? 1 : 0;
}

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** Converts a count to a number, at most 2^53 - 1, because larger JSON numbers are not exact. */
export function toSafeNumber(count: bigint): number {
  return Number(count > MAX_SAFE ? MAX_SAFE : count);
}
