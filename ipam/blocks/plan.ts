import { BlockRelease, ReleaseReason } from '../../api/address-block.js';
import { BLOCK_FINALIZER } from '../../api/names.js';
import type { Family } from '../core/address.js';
import type { BlockAction } from './action.js';
import { PlanBuilder } from './plan-builder.js';
import { type NodeBlock, type NodeBlockSet, nodeBlockSetsOf, isBeingReleased } from './node-block-set.js';
import type { BlockPolicy, ObservedBlock, ObservedPool, UnlentSlice } from './observed-pool.js';
import { isDue, reclaim } from './reclaim.js';
import type { PlanState } from './plan-state.js';

export interface BlockPlan {
  readonly actions: readonly BlockAction[];
  /** The input of the next plan of the pool. */
  readonly state: PlanState;
  /** When the next sync is due even without a change, clock time in ms. */
  readonly requeueAt?: number;
}

/** The policy and the time of a plan. */
export interface BlockPlanOptions {
  readonly policy: BlockPolicy;
  /** In the clock's ms. */
  readonly now: number;
}

/**
 * Plans the blocks of a pool: assigns slices to nodes that need addresses, and reclaims blocks that nodes do not need. This is ipam's side of the
 * release handshake. A plan has at most one write for each block; the next plan starts from the result.
 */
export function planBlocks(pool: ObservedPool, state: PlanState, { policy, now }: BlockPlanOptions): BlockPlan {
  const builder = new PlanBuilder(state, policy, now);
  for (const block of pool.blocks) planBlock(block, pool, builder);
  if (pool.phase === 'serving' || pool.phase === 'ending') planNodes(pool, builder);
  const { actions, requeueAt } = builder;
  return { actions, state: builder.state, ...(requeueAt !== undefined && { requeueAt }) };
}

/** Plans what does not depend on the other blocks of the node. */
function planBlock(block: ObservedBlock, { phase }: ObservedPool, builder: PlanBuilder): void {
  const { record } = block;
  if (record.release === 'unknown') return;
  if (record.release === BlockRelease.Released) planDeletion(block, 'the block is released', builder);
  else if (phase === 'ended') planDeletion(block, 'the pool no longer exists', builder);
  else if (record.release === BlockRelease.Refused) builder.acceptRefusal(block);
  else if (phase === 'idle') builder.keepState(block);
  else if (phase === 'serving' && mustDrain(block)) {
    builder.actions.push({
      kind: 'withdraw',
      block: record,
      why: 'the pool no longer has this slice, and pods use it',
    });
  }
}

/** Whether a block that is no slice any more must be deleted while it is in use. Otherwise new pods could use it forever. */
function mustDrain({ record: { release, metadata }, isSlice, used }: ObservedBlock): boolean {
  const isHeldBack = metadata.finalizers?.includes(BLOCK_FINALIZER) === true;
  return !isSlice && used > 0 && release === undefined && metadata.deletionTimestamp === undefined && isHeldBack;
}

function planDeletion({ record: block }: ObservedBlock, why: string, { actions }: PlanBuilder): void {
  const { deletionTimestamp, finalizers = [] } = block.metadata;
  if (deletionTimestamp === undefined) actions.push({ kind: 'delete', block, why });
  // otherwise only finalizers of other software keep it
  else if (finalizers.includes(BLOCK_FINALIZER)) actions.push({ kind: 'remove-finalizer', block, why });
}

function planNodes(pool: ObservedPool, builder: PlanBuilder): void {
  const blockSets = nodeBlockSetsOf(pool, builder.policy);
  for (const { blocks } of blockSets) for (const held of blocks) builder.updateState(held);
  for (const family of [4, 6] as const) {
    const ofFamily = blockSets.filter((blockSet) => blockSet.family === family);
    planFamily(pool, family, ofFamily, builder);
  }
}

function planFamily(
  pool: ObservedPool,
  family: Family,
  blockSets: readonly NodeBlockSet[],
  builder: PlanBuilder,
): void {
  const shortageUntil = (pool.claimShortageAt[family] ?? Number.NEGATIVE_INFINITY) + builder.policy.excessDelayMs;
  const hasShortage = builder.now < shortageUntil;
  const open = blockSets
    .flatMap(({ blocks }) => blocks)
    .filter((held) => !planForcedRelease(held, builder))
    .filter((held) => !planKeep(held, hasShortage, builder));
  for (const held of open)
    if (!isBeingReleased(held.observed) && isDue(held, builder)) held.blockSet.keptFree -= held.free;
  const unlent = pool.unlent[family][Symbol.iterator]();
  if (pool.phase !== 'serving') {
    reclaim(open, { missingSlices: 0, isForClaims: false }, builder);
  } else if (hasShortage) {
    // free slices are left for claims until the shortage has ended for the whole delay
    builder.requeueBy(shortageUntil);
    reclaim(open, { missingSlices: unlent.next().done === true ? 1 : 0, isForClaims: true }, builder);
  } else {
    const needy = blockSets.filter(({ hasDemand, keptFree }) => hasDemand && keptFree < builder.policy.minFree);
    reclaim(open, { missingSlices: lendTo(needy, pool, unlent, builder), isForClaims: false }, builder);
  }
}

/** Plans the release of a block from which no node will pick any more. */
function planForcedRelease(held: NodeBlock, builder: PlanBuilder): boolean {
  switch (held.reclaimReason) {
    case ReleaseReason.NodeGone:
      builder.advanceRelease(held, held.reclaimReason, 'the node no longer exists');
      return true;
    case ReleaseReason.Withdrawn:
      builder.advanceRelease(
        held,
        held.reclaimReason,
        'the block or its pool is being deleted, or the pool no longer has this slice',
      );
      return true;
    default:
      return false;
  }
}

/** Aborts the release of a block that its node uses or needs. */
function planKeep(held: NodeBlock, hasShortage: boolean, builder: PlanBuilder): boolean {
  const { observed, reclaimReason, blockSet } = held;
  if (reclaimReason !== undefined || !isBeingReleased(observed)) return false;
  if (observed.used > 0) builder.abortRelease(held, `pods of the node hold ${observed.used} addresses of the block`);
  else if (!hasShortage && blockSet.hasDemand && blockSet.keptFree < builder.policy.minFree)
    builder.abortRelease(held, 'the node needs it again');
  else return false;
  return true;
}

/** @returns how many nodes get too few addresses */
function lendTo(
  needy: readonly NodeBlockSet[],
  { name: pool }: ObservedPool,
  unlent: Iterator<UnlentSlice>,
  { actions, policy: { minFree } }: PlanBuilder,
): number {
  let shortage = 0;
  for (const blockSet of [...needy].sort(poorestFirst)) {
    while (blockSet.keptFree < minFree) {
      const next = unlent.next();
      if (next.done === true) {
        shortage++;
        break;
      }
      const { cidr: slice, free } = next.value;
      const why = `the blocks of the node have ${blockSet.keptFree} free addresses, fewer than ${minFree}`;
      actions.push({ kind: 'lend', pool, slice, node: blockSet.nodeName, why });
      blockSet.keptFree += free;
    }
  }
  return shortage;
}

/** Sorts sets with the fewest free addresses first. */
function poorestFirst(one: NodeBlockSet, other: NodeBlockSet): number {
  return one.keptFree - other.keptFree || (one.nodeName < other.nodeName ? -1 : 1);
}
