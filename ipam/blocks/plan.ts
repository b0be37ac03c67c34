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
  /** For the next plan of the pool. */
  readonly state: PlanState;
  /** When to look again though nothing has changed, in the clock's ms. */
  readonly requeueAt?: number;
}

/** By which rules is planned, and when. */
export interface BlockPlanOptions {
  readonly policy: BlockPolicy;
  /** In the clock's ms. */
  readonly now: number;
}

/**
 * Lends a pool's slices to nodes that need addresses, and has those back that they do not: the pool's side of the handshake. At most one write of
 * each block; whatever becomes of it, the next plan is made of what is there then.
 */
export function planBlocks(pool: ObservedPool, state: PlanState, { policy, now }: BlockPlanOptions): BlockPlan {
  const draft = new PlanBuilder(state, policy, now);
  for (const block of pool.blocks) planBlock(block, pool, draft);
  if (pool.phase === 'serving' || pool.phase === 'ending') planNodes(pool, draft);
  const { actions, requeueAt } = draft;
  return { actions, state: draft.state, ...(requeueAt !== undefined && { requeueAt }) };
}

/** Whatever does not depend on what else its node has. */
function planBlock(block: ObservedBlock, { phase }: ObservedPool, draft: PlanBuilder): void {
  const { record } = block;
  if (record.release === 'unknown') return;
  if (record.release === BlockRelease.Released) planDeletion(block, 'it is the pool’s again', draft);
  else if (phase === 'ended') planDeletion(block, 'its pool is no more', draft);
  else if (record.release === BlockRelease.Refused) draft.acceptRefusal(block);
  else if (phase === 'idle') draft.keepState(block);
  else if (phase === 'serving' && mustDrain(block)) {
    draft.actions.push({
      kind: 'withdraw',
      block: record,
      why: 'the pool has no such block any more, and pods use it',
    });
  }
}

/** New pods would come into it for ever, were it not withdrawn before the last one has left. */
function mustDrain({ record: { release, metadata }, isSlice, used }: ObservedBlock): boolean {
  const isHeldBack = metadata.finalizers?.includes(BLOCK_FINALIZER) === true;
  return !isSlice && used > 0 && release === undefined && metadata.deletionTimestamp === undefined && isHeldBack;
}

function planDeletion({ record: block }: ObservedBlock, why: string, { actions }: PlanBuilder): void {
  const { deletionTimestamp, finalizers = [] } = block.metadata;
  if (deletionTimestamp === undefined) actions.push({ kind: 'delete', block, why });
  // else only others hold it
  else if (finalizers.includes(BLOCK_FINALIZER)) actions.push({ kind: 'let-go', block, why });
}

function planNodes(pool: ObservedPool, draft: PlanBuilder): void {
  const holdings = nodeBlockSetsOf(pool, draft.policy);
  for (const { blocks } of holdings) for (const held of blocks) draft.updateState(held);
  for (const family of [4, 6] as const) {
    const ofFamily = holdings.filter((holding) => holding.family === family);
    planFamily(pool, family, ofFamily, draft);
  }
}

function planFamily(pool: ObservedPool, family: Family, holdings: readonly NodeBlockSet[], draft: PlanBuilder): void {
  const pressedUntil = (pool.claimsPressedAt[family] ?? Number.NEGATIVE_INFINITY) + draft.policy.excessDelayMs;
  const isPressed = draft.now < pressedUntil;
  const open = holdings
    .flatMap(({ blocks }) => blocks)
    .filter((held) => !planForcedRelease(held, draft))
    .filter((held) => !planKeep(held, isPressed, draft));
  for (const held of open)
    if (!isBeingReleased(held.observed) && isDue(held, draft)) held.blockSet.keptFree -= held.free;
  const unlent = pool.unlent[family][Symbol.iterator]();
  if (pool.phase !== 'serving') {
    reclaim(open, { missingSlices: 0, isForClaims: false }, draft);
  } else if (isPressed) {
    // what is left is for claims until they have found enough for a while
    draft.requeueBy(pressedUntil);
    reclaim(open, { missingSlices: unlent.next().done === true ? 1 : 0, isForClaims: true }, draft);
  } else {
    const needy = holdings.filter(({ hasDemand, keptFree }) => hasDemand && keptFree < draft.policy.minFree);
    reclaim(open, { missingSlices: lendTo(needy, pool, unlent, draft), isForClaims: false }, draft);
  }
}

/** What nobody will pick from any more goes back, whatever others need. */
function planForcedRelease(held: NodeBlock, draft: PlanBuilder): boolean {
  switch (held.reclaimReason) {
    case ReleaseReason.NodeGone:
      draft.advanceRelease(held, held.reclaimReason, 'its node is no more');
      return true;
    case ReleaseReason.Withdrawn:
      draft.advanceRelease(
        held,
        held.reclaimReason,
        'it or its pool is being deleted, or the pool has no such block any more',
      );
      return true;
    default:
      return false;
  }
}

/** It is on its way back, and is left to its node, which uses it or has too few addresses without it. */
function planKeep(held: NodeBlock, isPressed: boolean, draft: PlanBuilder): boolean {
  const { observed, reclaimReason, blockSet } = held;
  if (reclaimReason !== undefined || !isBeingReleased(observed)) return false;
  if (observed.used > 0) draft.abortRelease(held, `pods of its node have ${observed.used} addresses of it`);
  else if (!isPressed && blockSet.hasDemand && blockSet.keptFree < draft.policy.minFree)
    draft.abortRelease(held, 'its node needs it again');
  else return false;
  return true;
}

/** @returns how many nodes go without */
function lendTo(
  needy: readonly NodeBlockSet[],
  { name: pool }: ObservedPool,
  unlent: Iterator<UnlentSlice>,
  { actions, policy: { minFree } }: PlanBuilder,
): number {
  let shortage = 0;
  for (const holding of [...needy].sort(poorestFirst)) {
    while (holding.keptFree < minFree) {
      const next = unlent.next();
      if (next.done === true) {
        shortage++;
        break;
      }
      const { cidr: slice, free } = next.value;
      const why = `its blocks have ${holding.keptFree} free addresses, fewer than ${minFree}`;
      actions.push({ kind: 'lend', pool, slice, node: holding.name, why });
      holding.keptFree += free;
    }
  }
  return shortage;
}

/** Those with nothing first. */
function poorestFirst(one: NodeBlockSet, other: NodeBlockSet): number {
  return one.keptFree - other.keptFree || (one.name < other.name ? -1 : 1);
}
