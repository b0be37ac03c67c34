import { ReleaseReason } from '../../api/address-block.js';
import type { PlanBuilder } from './plan-builder.js';
import { type NodeBlock, isBeingReleased } from './node-block-set.js';

export interface SliceShortage {
  /** How many slices are missing for claims or other nodes. */
  readonly missingSlices: number;
  /** Whether blocks that a node may need soon are reclaimed too: for claims, but not for other nodes, or blocks would move forever. */
  readonly isForClaims: boolean;
}

/**
 * Plans blocks that no pod of their node uses. Releases as many as are missing without delay, first those that are being released already.
 * Aborts the other releases, unless the node has too many addresses.
 */
export function reclaim(
  blocks: readonly NodeBlock[],
  { missingSlices, isForClaims }: SliceShortage,
  plan: PlanBuilder,
): void {
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
export function isDue(block: NodeBlock, plan: PlanBuilder): boolean {
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
