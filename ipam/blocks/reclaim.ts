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
  builder: PlanBuilder,
): void {
  let missing = missingSlices;
  const rest: NodeBlock[] = [];
  for (const held of blocks) {
    if (!isBeingReleased(held.observed) && !isDue(held, builder)) rest.push(held);
    else if (missing > 0 && canBeReclaimed(held)) {
      missing--;
      builder.advanceRelease(held, ReleaseReason.Pressure, SHORTAGE);
    } else if (held.reclaimReason !== undefined)
      builder.advanceRelease(held, held.reclaimReason, surplusReason(held, builder));
    else builder.abortRelease(held, 'no claim or other node needs it more than its node');
  }
  const gives = (held: NodeBlock): boolean =>
    canBeReclaimed(held) &&
    (isForClaims || canBeSpared(held, builder)) &&
    builder.mayMark(held, ReleaseReason.Pressure);
  for (const held of rest.sort(leastNeededFirst)) {
    if (missing <= 0) return;
    if (!gives(held)) continue;
    missing--;
    held.blockSet.keptFree -= held.free;
    builder.advanceRelease(held, ReleaseReason.Pressure, SHORTAGE);
  }
}

/** Whether the block is unused and has free addresses. */
function canBeReclaimed({ observed, free }: NodeBlock): boolean {
  return observed.used === 0 && free > 0;
}

/** Whether the block is not needed and may be marked now. */
export function isDue(held: NodeBlock, builder: PlanBuilder): boolean {
  return held.reclaimReason !== undefined && builder.mayMark(held, held.reclaimReason);
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
