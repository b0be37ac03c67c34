import type { ReleaseReason } from '../../api/address-block.js';

/** The state of a block between two plans. It is lost if the process restarts; then all delays start anew. */
export interface BlockState {
  /** Since when (clock time in ms) and why the node does not need the block. */
  readonly reclaimable?: { readonly since: number; readonly reason: ReleaseReason };
  /** When the refusal of the node was seen, clock time in ms. */
  readonly refusedAt?: number;
}

/** By UID of the block. */
export type PlanState = ReadonlyMap<string, BlockState>;

/** The states of one term of leadership, by pool. */
export class PlanStates {
  readonly #ofPool = new Map<string, PlanState>();

  of(pool: string): PlanState {
    return this.#ofPool.get(pool) ?? EMPTY_STATE;
  }

  /** @param state of the last plan */
  set(pool: string, state: PlanState): void {
    if (state.size === 0) this.#ofPool.delete(pool);
    else this.#ofPool.set(pool, state);
  }
}

const EMPTY_STATE: PlanState = new Map();
