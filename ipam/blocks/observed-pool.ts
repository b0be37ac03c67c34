import type { Family } from '../core/address.js';
import type { BlockRecord } from '../core/block.js';
import type { Cidr } from '../core/cidr.js';

/** What is known of a pool's blocks at one moment: plain data, which a plan is made of. Counts are capped at 2^53 - 1. */
export interface ObservedPool {
  readonly name: string;
  readonly phase: PoolPhase;
  /** All that there are, in any state. */
  readonly blocks: readonly ObservedBlock[];
  /** Who is missing is no node of the cluster, and no lease names it. */
  readonly nodes: ReadonlyMap<string, ObservedNode>;
  /** What may be lent, best first; none of it overlaps a block of the pool or is without free addresses. Read as far as it is needed. */
  readonly unlent: Readonly<Record<Family, Iterable<UnlentSlice>>>;
  /** When a claim found no free address outside of blocks last, in the clock's ms; absent: never. */
  readonly claimsPressedAt: Readonly<Partial<Record<Family, number>>>;
}

/**
 * - `serving`: it lends
 * - `idle`: it serves nobody now, or nothing can be said of it: blocks stay as they are
 * - `ending`: it is being deleted, and addresses of it are leased
 * - `ended`: it is no more, or goes now: nobody picks from its blocks
 */
export type PoolPhase = 'serving' | 'idle' | 'ending' | 'ended';

export interface ObservedBlock {
  readonly record: BlockRecord;
  /** Held leases of its pool at addresses of it, of pods of its node. */
  readonly used: number;
  /** Its addresses that anybody may have, and nobody has a lease of. */
  readonly free: number;
  /** Its addresses that anybody may have. */
  readonly size: number;
  /** It is what the pool would lend now: the pool's spec may have changed. */
  readonly isSlice: boolean;
}

export interface ObservedNode {
  /** There is an object of it. */
  readonly isThere: boolean;
  /** It may be lent blocks: it is there, is not being deleted, and is one of the pool's nodes. */
  readonly isEligible: boolean;
  /** Held leases of the pool that pods of it have. */
  readonly leases: Readonly<Record<Family, number>>;
}

export interface UnlentSlice {
  readonly cidr: Cidr;
  readonly free: number;
}

/** How many free addresses a node shall have in its blocks, and how long it may have more than that. */
export interface BlockPolicy {
  readonly minFree: number;
  readonly maxFree: number;
  readonly excessDelayMs: number;
}
