import type { ReleaseReason } from '../../api/address-block.js';

/** What of a block is remembered from look to look, and lost with the process: then all delays begin anew. */
export interface BlockState {
  /** The block is unwanted since, in the clock's ms, for this reason. */
  readonly unwanted?: { readonly since: number; readonly reason: ReleaseReason };
  /** When its node's refusal was seen, in the clock's ms. */
  readonly refusedAt?: number;
}

/** By the blocks' UIDs. */
export type PlanState = ReadonlyMap<string, BlockState>;

/** The memories of one term of leadership, by pool. */
export class PlanStates {
  readonly #ofPool = new Map<string, PlanState>();

  of(pool: string): PlanState {
    return this.#ofPool.get(pool) ?? EMPTY_STATE;
  }

  /** @param state as the last plan has them */
  set(pool: string, state: PlanState): void {
    if (state.size === 0) this.#ofPool.delete(pool);
    else this.#ofPool.set(pool, state);
  }
}

const EMPTY_STATE: PlanState = new Map();
