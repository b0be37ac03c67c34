import type { Cidr } from '../core/cidr.js';
import { type Range, RangeSet } from '../core/ranges.js';
import { rangeOf } from '../core/slices.js';

/** Until it is tried again. */
const SPOILED_MS = 300_000;

/** Slices that cannot be lent, for something that is no block has their name. */
export class SpoiledSlices {
  readonly #ofPool = new Map<string, { range: Range; until: number }[]>();

  add(pool: string, slice: Cidr, now: number): void {
    const left = (this.#ofPool.get(pool) ?? []).filter(({ until }) => until > now);
    this.#ofPool.set(pool, [...left, { range: rangeOf(slice), until: now + SPOILED_MS }]);
  }

  of(pool: string, now: number): RangeSet {
    const found = this.#ofPool.get(pool);
    if (found === undefined) return RangeSet.EMPTY;
    return RangeSet.of(found.filter(({ until }) => until > now).map(({ range }) => range));
  }
}
