/** All numbers from `first` to `last`, both included. */
export interface Range {
  readonly first: bigint;
  readonly last: bigint;
}

/**
 * A set of numbers as sorted ranges with gaps between them: its cost is the number of ranges, never that of numbers.
 * Immutable. Equal sets have equal ranges.
 */
export class RangeSet {
  static readonly EMPTY = new RangeSet([]);

  readonly ranges: readonly Range[];
  readonly size: bigint;

  private constructor(ranges: readonly Range[]) {
    this.ranges = ranges;
    this.size = ranges.reduce((sum, { first, last }) => sum + last - first + 1n, 0n);
  }

  /** The union of ranges in any order, which may overlap. A range whose last is before its first is empty. */
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

  /** In O(log n) of the ranges. */
  has(value: bigint): boolean {
    return this.#meets(value, value);
  }

  /** In O(log n) of the ranges. */
  overlaps({ first, last }: Range): boolean {
    return this.#meets(first, last);
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

  /** What is here and not in the other. */
  subtract(other: RangeSet): RangeSet {
    return this.intersect(other.#outside(this.ranges));
  }

  #meets(first: bigint, last: bigint): boolean {
    let [low, high] = [0, this.ranges.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const range = this.ranges[middle];
      if (range === undefined || last < range.first) high = middle;
      else if (first > range.last) low = middle + 1;
      else return true;
    }
    return false;
  }

  /** What is not in the set: all of it that lies within the bounds of sorted ranges, and perhaps some that does not. */
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

function byFirst(a: Range, b: Range): number {
  return a.first < b.first ? -1 : a.first > b.first ? 1 : 0;
}
