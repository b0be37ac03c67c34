import type { Pool } from '../../addressing/pool/pool.js';
import { type OccupiedAddresses, SliceOccupancy } from './slice-occupancy.js';

/** The slices of each pool by its current spec, computed on first use. */
export class PoolSlices {
  readonly #spaceOf: (name: string) => OccupiedAddresses;
  readonly #occupancies = new Map<string, SliceOccupancy>();

  constructor(book: { space(name: string): OccupiedAddresses }) {
    this.#spaceOf = (name) => book.space(name);
  }

  /** @param pool from the directory, compared by identity */
  of(pool: Pool): SliceOccupancy {
    const known = this.#occupancies.get(pool.name);
    if (known?.pool === pool) return known;
    known?.stop();
    const occupancy = new SliceOccupancy(pool, this.#spaceOf(pool.addressSpace));
    this.#occupancies.set(pool.name, occupancy);
    return occupancy;
  }

  forget(pool: string): void {
    this.#occupancies.get(pool)?.stop();
    this.#occupancies.delete(pool);
  }
}
