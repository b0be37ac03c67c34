import type { LentAddresses } from '../../addressing/allocator/address-space.js';
import { type Cidr, rangesOf } from '../../addressing/address/cidr.js';

/** Time until the slice is tried again. */
const RETRY_MS = 300_000;

/** Slices that are not assigned for some time, because an object that is not a valid block has their name. */
export class UnusableSlices {
  readonly #ofPool = new Map<string, { slice: Cidr; until: number }[]>();

  add(pool: string, slice: Cidr, now: number): void {
    const left = (this.#ofPool.get(pool) ?? []).filter(({ until }) => until > now);
    this.#ofPool.set(pool, [...left, { slice, until: now + RETRY_MS }]);
  }

  of(pool: string, now: number): LentAddresses {
    const found = (this.#ofPool.get(pool) ?? []).filter(({ until }) => until > now).map(({ slice }) => slice);
    return { 4: rangesOf(found, 4), 6: rangesOf(found, 6) };
  }
}
