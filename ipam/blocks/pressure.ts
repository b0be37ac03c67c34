import { ReleaseReason } from '../../api/address-block.js';
import type { Draft } from './draft.js';
import { type HeldBlock, isComingBack } from './holdings.js';

export interface Pressure {
  /** How many slices others lack, and nobody finds. */
  readonly shortage: number;
  /** Whether nodes give what they may soon need themselves: to claims, not to each other, or a block would never come to rest. */
  readonly sparesAll: boolean;
}

/**
 * Decides on blocks that no pod of their nodes uses: as many as others lack are asked for, and taken back, without delay; first those that
 * are on their way back. Others of these are left to their nodes, unless they have too much.
 */
export function relieve(blocks: readonly HeldBlock[], { shortage, sparesAll }: Pressure, draft: Draft): void {
  let lacking = shortage;
  const rest: HeldBlock[] = [];
  for (const held of blocks) {
    if (!isComingBack(held.seen) && !isDue(held, draft)) rest.push(held);
    else if (lacking > 0 && helps(held)) {
      lacking--;
      draft.bringBack(held, ReleaseReason.Pressure, WHY);
    } else if (held.unwanted !== undefined) draft.bringBack(held, held.unwanted, whySpare(held, draft));
    else draft.keep(held, 'nobody needs it more than its node');
  }
  const gives = (held: HeldBlock): boolean =>
    helps(held) && (sparesAll || isSpare(held, draft)) && draft.mayMark(held, ReleaseReason.Pressure);
  for (const held of rest.sort(byNeed)) {
    if (lacking <= 0) return;
    if (!gives(held)) continue;
    lacking--;
    held.holding.kept -= held.free;
    draft.bringBack(held, ReleaseReason.Pressure, WHY);
  }
}

/** Others would have something by it, and no pod loses it. */
function helps({ seen, free }: HeldBlock): boolean {
  return seen.used === 0 && free > 0;
}

/** It has not been asked for, and has been too much for the whole delay. */
export function isDue(held: HeldBlock, draft: Draft): boolean {
  return held.unwanted !== undefined && draft.mayMark(held, held.unwanted);
}

const WHY = 'others find no free address outside of blocks';

function whySpare({ holding }: HeldBlock, { policy: { maxFree } }: Draft): string {
  return holding.hasDemand ? `its node has more than ${maxFree} free addresses` : 'no pod of its node needs it';
}

function isSpare({ free, holding }: HeldBlock, { policy: { minFree } }: Draft): boolean {
  return !holding.hasDemand || holding.kept - free >= minFree;
}

/** Who needs least gives first. */
function byNeed({ holding: one, seen: first }: HeldBlock, { holding: other, seen: second }: HeldBlock): number {
  if (one.hasDemand !== other.hasDemand) return one.hasDemand ? 1 : -1;
  return other.kept - one.kept || (first.record.metadata.name < second.record.metadata.name ? -1 : 1);
}
