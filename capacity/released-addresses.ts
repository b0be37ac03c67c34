import { OccupiedSet } from '../ipam/core/occupied-set.js';

/** A set of addresses as far as it is counted. */
export interface AddressCounter {
  /** How many from `first` to `last`, both included, are in it. */
  countIn(first: bigint, last: bigint): number;
}

/** Addresses of one pool and family that nobody has, and since when: somebody else may have them once they have cooled down. */
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
   * As they are now. Most have cooled down long ago, and wait for their MAC addresses: the others are looked at one by one.
   * @param cooledSince what was released then or before has cooled down; in milliseconds since the epoch
   */
  cooled(cooledSince: number): AddressCounter {
    const cooling = new OccupiedSet();
    for (const [value, since] of this.#since) if (since > cooledSince) cooling.add(value);
    return { countIn: (first, last) => this.#all.countIn(first, last) - cooling.countIn(first, last) };
  }
}
