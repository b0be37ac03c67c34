import type { Family } from '../../addressing/address/address.js';
import { BlockRelease, ReleaseReason } from '../../api/address-block.js';
import { BLOCK_FINALIZER } from '../../api/names.js';
import type { BlockAction } from './action.js';
import type { BlockPolicy, ObservedBlock, ObservedPool, PlanState, UnlentSlice } from './observed-pool.js';
import { type NodeBlock, type NodeBlockSet, PlanBuilder, isBeingReleased, nodeBlockSetsOf } from './plan-builder.js';

export interface BlockPlan {
  readonly actions: readonly BlockAction[];
  /** The input of the next plan of the pool. */
  readonly state: PlanState;
  /** When the next sync is due even without a change, clock time in ms. */
  readonly requeueAt?: number;
}

/** The policy and the time of a plan. */
interface BlockPlanOptions {
  readonly policy: BlockPolicy;
  /** Clock time in ms. */
  readonly now: number;
}

/**
 * Plans the blocks of a pool: assigns slices to nodes that need addresses, and reclaims blocks that nodes do not need. This is ipam's side of the
 * release handshake. A plan has at most one write for each block; the next plan starts from the result.
 */
export function planBlocks(pool: ObservedPool, state: PlanState, { policy, now }: BlockPlanOptions): BlockPlan {
  const plan = new PlanBuilder(state, policy, now);
  for (const block of pool.blocks) planBlock(block, pool, plan);
  if (pool.phase === 'serving' || pool.phase === 'ending') planNodes(pool, plan);
  const { actions, requeueAt } = plan;
  return { actions, state: plan.state, ...(requeueAt !== undefined && { requeueAt }) };
}

/** Plans what does not depend on the other blocks of the node. */
function planBlock(block: ObservedBlock, { phase }: ObservedPool, plan: PlanBuilder): void {
  const { record } = block;
  if (record.release === 'unknown') return;
  if (record.release === BlockRelease.Released) planDeletion(block, 'the block is released', plan);
  else if (phase === 'ended') planDeletion(block, 'the pool no longer exists', plan);
  else if (record.release === BlockRelease.Refused) plan.acceptRefusal(block);
  else if (phase === 'idle') plan.keepState(block);
  else if (phase === 'serving' && mustDrain(block)) {
    plan.actions.push({ kind: 'withdraw', block: record, why: 'the pool no longer has this slice, and pods use it' });
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

function planNodes(pool: ObservedPool, plan: PlanBuilder): void {
  const sets = nodeBlockSetsOf(pool, plan.policy);
  for (const { blocks } of sets) for (const block of blocks) plan.updateState(block);
  for (const family of [4, 6] as const) {
    const ofFamily = sets.filter((blockSet) => blockSet.family === family);
    planFamily(pool, family, ofFamily, plan);
  }
}

function planFamily(pool: ObservedPool, family: Family, sets: readonly NodeBlockSet[], plan: PlanBuilder): void {
  const shortageUntil = (pool.claimShortageAt[family] ?? Number.NEGATIVE_INFINITY) + plan.policy.excessDelayMs;
  const hasShortage = plan.now < shortageUntil;
  const open = sets
    .flatMap(({ blocks }) => blocks)
    .filter((block) => !planForcedRelease(block, plan))
    .filter((block) => !planKeep(block, hasShortage, plan));
  for (const block of open)
    if (!isBeingReleased(block.observed) && isDue(block, plan)) block.blockSet.keptFree -= block.free;
  const unlent = pool.unlent[family][Symbol.iterator]();
  if (pool.phase !== 'serving') {
    reclaim(open, { missingSlices: 0, isForClaims: false }, plan);
  } else if (hasShortage) {
    // free slices are left for claims until the shortage has ended for the whole delay
    plan.requeueBy(shortageUntil);
    reclaim(open, { missingSlices: unlent.next().done === true ? 1 : 0, isForClaims: true }, plan);
  } else {
    const setsInNeed = sets.filter(({ hasDemand, keptFree }) => hasDemand && keptFree < plan.policy.minFree);
    reclaim(open, { missingSlices: lendTo(setsInNeed, pool, unlent, plan), isForClaims: false }, plan);
  }
}

/** Plans the release of a block from which no node will pick any more. */
function planForcedRelease(block: NodeBlock, plan: PlanBuilder): boolean {
  switch (block.reclaimReason) {
    case ReleaseReason.NodeGone:
      plan.advanceRelease(block, block.reclaimReason, 'the node no longer exists');
      return true;
    case ReleaseReason.Withdrawn:
      plan.advanceRelease(
        block,
        block.reclaimReason,
        'the block or its pool is being deleted, or the pool no longer has this slice',
      );
      return true;
    default:
      return false;
  }
}

/** Aborts the release of a block that its node uses or needs. */
function planKeep(block: NodeBlock, hasShortage: boolean, plan: PlanBuilder): boolean {
  const { observed, reclaimReason, blockSet } = block;
  if (reclaimReason !== undefined || !isBeingReleased(observed)) return false;
  if (observed.used > 0) plan.abortRelease(block, `pods of the node hold ${observed.used} addresses of the block`);
  else if (!hasShortage && blockSet.hasDemand && blockSet.keptFree < plan.policy.minFree)
    plan.abortRelease(block, 'the node needs it again');
  else return false;
  return true;
}

/** @returns how many nodes get too few addresses */
function lendTo(
  setsInNeed: readonly NodeBlockSet[],
  { name: pool }: ObservedPool,
  unlent: Iterator<UnlentSlice>,
  { actions, policy: { minFree } }: PlanBuilder,
): number {
  let shortage = 0;
  for (const blockSet of [...setsInNeed].sort(poorestFirst)) {
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

interface SliceShortage {
  /** How many slices are missing for claims or other nodes. */
  readonly missingSlices: number;
  /** Whether blocks that a node may need soon are reclaimed too: for claims, but not for other nodes, or blocks would move forever. */
  readonly isForClaims: boolean;
}

/**
 * Plans blocks that no pod of their node uses. Releases as many as are missing without delay, first those that are being released already.
 * Aborts the other releases, unless the node has too many addresses.
 */
function reclaim(blocks: readonly NodeBlock[], { missingSlices, isForClaims }: SliceShortage, plan: PlanBuilder): void {
  let missing = missingSlices;
  const rest: NodeBlock[] = [];
  for (const block of blocks) {
    if (!isBeingReleased(block.observed) && !isDue(block, plan)) rest.push(block);
    else if (missing > 0 && canBeReclaimed(block)) {
      missing--;
      plan.advanceRelease(block, ReleaseReason.Pressure, SHORTAGE);
    } else if (block.reclaimReason !== undefined)
      plan.advanceRelease(block, block.reclaimReason, surplusReason(block, plan));
    else plan.abortRelease(block, 'no claim or other node needs it more than its node');
  }
  const canGive = (block: NodeBlock): boolean =>
    canBeReclaimed(block) && (isForClaims || canBeSpared(block, plan)) && plan.mayMark(block, ReleaseReason.Pressure);
  for (const block of rest.sort(leastNeededFirst)) {
    if (missing <= 0) return;
    if (!canGive(block)) continue;
    missing--;
    block.blockSet.keptFree -= block.free;
    plan.advanceRelease(block, ReleaseReason.Pressure, SHORTAGE);
  }
}

/** Whether the block is unused and has free addresses. */
function canBeReclaimed({ observed, free }: NodeBlock): boolean {
  return observed.used === 0 && free > 0;
}

/** Whether the block is not needed and may be marked now. */
function isDue(block: NodeBlock, plan: PlanBuilder): boolean {
  return block.reclaimReason !== undefined && plan.mayMark(block, block.reclaimReason);
}

const SHORTAGE = 'claims or other nodes find no free address outside of blocks';

function surplusReason({ blockSet }: NodeBlock, { policy: { maxFree } }: PlanBuilder): string {
  return blockSet.hasDemand ? `the node has more than ${maxFree} free addresses` : 'the node does not need it';
}

function canBeSpared({ free, blockSet }: NodeBlock, { policy: { minFree } }: PlanBuilder): boolean {
  return !blockSet.hasDemand || blockSet.keptFree - free >= minFree;
}

/** Sorts blocks of the nodes that need them least first. */
function leastNeededFirst(
  { blockSet: one, observed: first }: NodeBlock,
  { blockSet: other, observed: second }: NodeBlock,
): number {
  if (one.hasDemand !== other.hasDemand) return one.hasDemand ? 1 : -1;
  return other.keptFree - one.keptFree || (first.record.metadata.name < second.record.metadata.name ? -1 : 1);
}
