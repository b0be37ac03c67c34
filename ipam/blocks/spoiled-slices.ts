import type { Lent } from '../core/address-space.js';
import type { Family } from '../core/address.js';
import type { Cidr } from '../core/cidr.js';
import { RangeSet } from '../core/ranges.js';
import { rangeOf } from '../core/slices.js';

/** Until it is tried again. */
const SPOILED_MS = 300_000;

/** Slices that cannot be lent, for something that is no block has their name. */
export class SpoiledSlices {
  readonly #ofPool = new Map<string, { slice: Cidr; until: number }[]>();

  add(pool: string, slice: Cidr, now: number): void {
    const left = (this.#ofPool.get(pool) ?? []).filter(({ until }) => until > now);
    this.#ofPool.set(pool, [...left, { slice, until: now + SPOILED_MS }]);
  }

  of(pool: string, now: number): Lent {
    const found = (this.#ofPool.get(pool) ?? []).filter(({ until }) => until > now);
    const ofFamily = (family: Family) =>
      RangeSet.of(found.flatMap(({ slice }) => (slice.family === family ? [rangeOf(slice)] : [])));
    return { 4: ofFamily(4), 6: ofFamily(6) };
  }
}
