import { ReleaseReason } from '../../api/address-block.js';
import type { PlanBuilder } from './plan-builder.js';
import { type NodeBlock, isBeingReleased } from './node-block-set.js';

export interface SliceShortage {
  /** How many slices others lack, and nobody finds. */
  readonly missingSlices: number;
  /** Whether nodes give what they may soon need themselves: to claims, not to each other, or a block would never come to rest. */
  readonly isForClaims: boolean;
}

/**
 * Decides on blocks that no pod of their nodes uses: as many as others lack are asked for, and taken back, without delay; first those that
 * are on their way back. Others of these are left to their nodes, unless they have too much.
 */
export function reclaim(
  blocks: readonly NodeBlock[],
  { missingSlices, isForClaims }: SliceShortage,
  draft: PlanBuilder,
): void {
  let missing = missingSlices;
  const rest: NodeBlock[] = [];
  for (const held of blocks) {
    if (!isBeingReleased(held.observed) && !isDue(held, draft)) rest.push(held);
    else if (missing > 0 && canBeReclaimed(held)) {
      missing--;
      draft.advanceRelease(held, ReleaseReason.Pressure, SHORTAGE);
    } else if (held.reclaimReason !== undefined)
      draft.advanceRelease(held, held.reclaimReason, surplusReason(held, draft));
    else draft.abortRelease(held, 'nobody needs it more than its node');
  }
  const gives = (held: NodeBlock): boolean =>
    canBeReclaimed(held) && (isForClaims || canBeSpared(held, draft)) && draft.mayMark(held, ReleaseReason.Pressure);
  for (const held of rest.sort(leastNeededFirst)) {
    if (missing <= 0) return;
    if (!gives(held)) continue;
    missing--;
    held.blockSet.keptFree -= held.free;
    draft.advanceRelease(held, ReleaseReason.Pressure, SHORTAGE);
  }
}

/** Others would have something by it, and no pod loses it. */
function canBeReclaimed({ observed, free }: NodeBlock): boolean {
  return observed.used === 0 && free > 0;
}

/** It has not been asked for, and has been too much for the whole delay. */
export function isDue(held: NodeBlock, draft: PlanBuilder): boolean {
  return held.reclaimReason !== undefined && draft.mayMark(held, held.reclaimReason);
}

const SHORTAGE = 'others find no free address outside of blocks';

function surplusReason({ blockSet }: NodeBlock, { policy: { maxFree } }: PlanBuilder): string {
  return blockSet.hasDemand ? `its node has more than ${maxFree} free addresses` : 'no pod of its node needs it';
}

function canBeSpared({ free, blockSet }: NodeBlock, { policy: { minFree } }: PlanBuilder): boolean {
  return !blockSet.hasDemand || blockSet.keptFree - free >= minFree;
}

/** Who needs least gives first. */
function leastNeededFirst(
  { blockSet: one, observed: first }: NodeBlock,
  { blockSet: other, observed: second }: NodeBlock,
): number {
  if (one.hasDemand !== other.hasDemand) return one.hasDemand ? 1 : -1;
  return other.keptFree - one.keptFree || (first.record.metadata.name < second.record.metadata.name ? -1 : 1);
}
