import { OccupiedSet } from '../addressing/allocator/occupied-set.js';

/** A set of addresses that can be counted. */
export interface AddressCounter {
  /** The number of addresses from `first` to `last`, both included. */
  countIn(first: bigint, last: bigint): number;
}

/** The released addresses of one pool and family, and when they were released. They are free after their cool-down. */
export class ReleasedAddresses {
  readonly #all = new OccupiedSet();
  /** In milliseconds since the epoch. */
  readonly #since = new Map<bigint, number>();

  set(value: bigint, since: number): void {
    this.#all.add(value);
    this.#since.set(value, since);
  }

  delete(value: bigint): void {
    if (this.#since.delete(value)) this.#all.delete(value);
  }

  /**
   * Returns the addresses that have cooled down. Most of them are only kept for their MAC addresses, so the few others are subtracted.
   * @param cooledSince addresses released at or before this time have cooled down; in milliseconds since the epoch
   */
  cooled(cooledSince: number): AddressCounter {
    const cooling = new OccupiedSet();
    for (const [value, since] of this.#since) if (since > cooledSince) cooling.add(value);
    return { countIn: (first, last) => this.#all.countIn(first, last) - cooling.countIn(first, last) };
  }
}
