import type { Pool } from '../core/pool.js';
import { type Occupancy, SliceUse } from './slice-use.js';

/** The slices of each pool that is asked about, as its spec is now. */
export class PoolSlices {
  readonly #spaceOf: (name: string) => Occupancy;
  readonly #uses = new Map<string, SliceUse>();

  constructor(book: { space(name: string): Occupancy }) {
    this.#spaceOf = (name) => book.space(name);
  }

  /** @param pool as the directory has it: compared by identity */
  of(pool: Pool): SliceUse {
    const known = this.#uses.get(pool.name);
    if (known?.pool === pool) return known;
    known?.end();
    const use = new SliceUse(pool, this.#spaceOf(pool.addressSpace));
    this.#uses.set(pool.name, use);
    return use;
  }

  forget(pool: string): void {
    this.#uses.get(pool)?.end();
    this.#uses.delete(pool);
  }
}
