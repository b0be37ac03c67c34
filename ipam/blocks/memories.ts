import type { ReleaseReason } from '../../api/address-block.js';

/** What of a block is remembered from look to look, and lost with the process: then all delays begin anew. */
export interface BlockMemory {
  /** The block is unwanted since, in the clock's ms, for this reason. */
  readonly unwanted?: { readonly since: number; readonly reason: ReleaseReason };
  /** When its node's refusal was seen, in the clock's ms. */
  readonly refusedAt?: number;
}

/** By the blocks' UIDs. */
export type Memories = ReadonlyMap<string, BlockMemory>;

/** The memories of one term of leadership, by pool. */
export class PoolMemories {
  readonly #ofPool = new Map<string, Memories>();

  of(pool: string): Memories {
    return this.#ofPool.get(pool) ?? NONE;
  }

  /** @param memories as the last plan has them */
  set(pool: string, memories: Memories): void {
    if (memories.size === 0) this.#ofPool.delete(pool);
    else this.#ofPool.set(pool, memories);
  }
}

const NONE: Memories = new Map();
