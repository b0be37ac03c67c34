import type { Family } from '../../addressing/address/address.js';
import type { Cidr } from '../../addressing/address/cidr.js';
import type { BlockRecord } from '../../addressing/block/block.js';
import type { ReleaseReason } from '../../api/address-block.js';

/** A snapshot of a pool's blocks, the input of a plan. Counts are capped at 2^53 - 1. */
export interface ObservedPool {
  readonly name: string;
  readonly phase: PoolPhase;
  /** All blocks of the pool, in any state. */
  readonly blocks: readonly ObservedBlock[];
  /** By name. A missing node does not exist, and no lease names it. */
  readonly nodes: ReadonlyMap<string, ObservedNode>;
  /** Slices that may be assigned, best first. They have free addresses and overlap no block of the pool. Computed lazily. */
  readonly unlent: Readonly<Record<Family, Iterable<UnlentSlice>>>;
  /** When a claim last found no free address outside of blocks, clock time in ms; absent if never. */
  readonly claimShortageAt: Readonly<Partial<Record<Family, number>>>;
}

/**
 * - `serving`: blocks are assigned
 * - `idle`: the pool does not serve, or its state is unknown; blocks stay unchanged
 * - `ending`: the pool is being deleted, and addresses of it are leased
 * - `ended`: the pool is deleted, or is being deleted without leases; agents do not pick from its blocks
 */
export type PoolPhase = 'serving' | 'idle' | 'ending' | 'ended';

export interface ObservedBlock {
  readonly record: BlockRecord;
  /** The number of leases in the block that pods of its node hold. */
  readonly used: number;
  /** Its addresses that any claim or pod may get and that have no lease. */
  readonly free: number;
  /** Its addresses that any claim or pod may get, leased or not. */
  readonly size: number;
  /** Whether the pool would still assign this slice; false after a change of its spec. */
  readonly isSlice: boolean;
}

export interface ObservedNode {
  /** Whether the Node object exists. */
  readonly exists: boolean;
  /** Whether the node may get blocks: it exists, is not being deleted, and matches the pool's nodeSelector. */
  readonly isEligible: boolean;
  /** The number of leases of the pool that its pods hold. */
  readonly leases: Readonly<Record<Family, number>>;
}

export interface UnlentSlice {
  readonly cidr: Cidr;
  readonly free: number;
}

/** How many free addresses a node should have in its blocks, and how long it may have more. */
export interface BlockPolicy {
  readonly minFree: number;
  readonly maxFree: number;
  readonly excessDelayMs: number;
}

/** The state of a block between two plans. It is lost if the process restarts; then all delays start anew. */
export interface BlockState {
  /** Since when (clock time in ms) and why the node does not need the block. */
  readonly reclaimable?: { readonly since: number; readonly reason: ReleaseReason };
  /** When the refusal of the node was seen, clock time in ms. */
  readonly refusedAt?: number;
}

/** By UID of the block. */
export type PlanState = ReadonlyMap<string, BlockState>;
