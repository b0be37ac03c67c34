import { BlockRelease, ReleaseReason } from '../../api/address-block.js';
import { BLOCK_FINALIZER } from '../../api/names.js';
import type { Family } from '../core/address.js';
import type { BlockAction } from './action.js';
import { Draft } from './draft.js';
import { type HeldBlock, type Holding, holdingsOf, isComingBack } from './holdings.js';
import type { BlockPolicy, ObservedBlock, ObservedPool, OpenSlice } from './observed.js';
import { isDue, relieve } from './pressure.js';
import type { Memories } from './memories.js';

export interface BlockPlan {
  readonly actions: readonly BlockAction[];
  /** For the next plan of the pool. */
  readonly memories: Memories;
  /** When to look again though nothing has changed, in the clock's ms. */
  readonly lookAt?: number;
}

/** By which rules is planned, and when. */
export interface BlockTerms {
  readonly policy: BlockPolicy;
  /** In the clock's ms. */
  readonly now: number;
}

/**
 * Lends a pool's slices to nodes that need addresses, and has those back that they do not: the pool's side of the handshake. At most one write of
 * each block; whatever becomes of it, the next plan is made of what is there then.
 */
export function planBlocks(pool: ObservedPool, memories: Memories, { policy, now }: BlockTerms): BlockPlan {
  const draft = new Draft(memories, policy, now);
  for (const block of pool.blocks) settle(block, pool, draft);
  if (pool.phase === 'serving' || pool.phase === 'ending') decide(pool, draft);
  const { actions, lookAt } = draft;
  return { actions, memories: draft.memories, ...(lookAt !== undefined && { lookAt }) };
}

/** Whatever does not depend on what else its node has. */
function settle(block: ObservedBlock, { phase }: ObservedPool, draft: Draft): void {
  const { record } = block;
  if (record.release === 'unknown') return;
  if (record.release === BlockRelease.Released) end(block, 'it is the pool’s again', draft);
  else if (phase === 'ended') end(block, 'its pool is no more', draft);
  else if (record.release === BlockRelease.Refused) draft.clear(block);
  else if (phase === 'idle') draft.carryOn(block);
  else if (phase === 'serving' && isOutgrown(block)) {
    draft.actions.push({
      kind: 'withdraw',
      block: record,
      why: 'the pool has no such block any more, and pods use it',
    });
  }
}

/** New pods would come into it for ever, were it not withdrawn before the last one has left. */
function isOutgrown({ record: { release, metadata }, isSlice, used }: ObservedBlock): boolean {
  const isHeldBack = metadata.finalizers?.includes(BLOCK_FINALIZER) === true;
  return !isSlice && used > 0 && release === undefined && metadata.deletionTimestamp === undefined && isHeldBack;
}

function end({ record: block }: ObservedBlock, why: string, { actions }: Draft): void {
  const { deletionTimestamp, finalizers = [] } = block.metadata;
  if (deletionTimestamp === undefined) actions.push({ kind: 'delete', block, why });
  // else only others hold it
  else if (finalizers.includes(BLOCK_FINALIZER)) actions.push({ kind: 'let-go', block, why });
}

function decide(pool: ObservedPool, draft: Draft): void {
  const holdings = holdingsOf(pool, draft.policy);
  for (const { blocks } of holdings) for (const held of blocks) draft.remember(held);
  for (const family of [4, 6] as const) {
    const ofFamily = holdings.filter((holding) => holding.family === family);
    decideFamily(pool, family, ofFamily, draft);
  }
}

function decideFamily(pool: ObservedPool, family: Family, holdings: readonly Holding[], draft: Draft): void {
  const pressedUntil = (pool.claimsPressedAt[family] ?? Number.NEGATIVE_INFINITY) + draft.policy.excessDelayMs;
  const isPressed = draft.now < pressedUntil;
  const open = holdings
    .flatMap(({ blocks }) => blocks)
    .filter((held) => !returns(held, draft))
    .filter((held) => !staysNeeded(held, isPressed, draft));
  for (const held of open) if (!isComingBack(held.seen) && isDue(held, draft)) held.holding.kept -= held.free;
  const unlent = pool.unlent[family][Symbol.iterator]();
  if (pool.phase !== 'serving') {
    relieve(open, { shortage: 0, sparesAll: false }, draft);
  } else if (isPressed) {
    // what is left is for claims until they have found enough for a while
    draft.lookAgain(pressedUntil);
    relieve(open, { shortage: unlent.next().done === true ? 1 : 0, sparesAll: true }, draft);
  } else {
    const needy = holdings.filter(({ hasDemand, kept }) => hasDemand && kept < draft.policy.minFree);
    relieve(open, { shortage: lendTo(needy, pool, unlent, draft), sparesAll: false }, draft);
  }
}

/** What nobody will pick from any more goes back, whatever others need. */
function returns(held: HeldBlock, draft: Draft): boolean {
  switch (held.unwanted) {
    case ReleaseReason.NodeGone:
      draft.bringBack(held, held.unwanted, 'its node is no more');
      return true;
    case ReleaseReason.Withdrawn:
      draft.bringBack(held, held.unwanted, 'it or its pool is being deleted, or the pool has no such block any more');
      return true;
    default:
      return false;
  }
}

/** It is on its way back, and is left to its node, which uses it or has too few addresses without it. */
function staysNeeded(held: HeldBlock, isPressed: boolean, draft: Draft): boolean {
  const { seen, unwanted, holding } = held;
  if (unwanted !== undefined || !isComingBack(seen)) return false;
  if (seen.used > 0) draft.keep(held, `pods of its node have ${seen.used} addresses of it`);
  else if (!isPressed && holding.hasDemand && holding.kept < draft.policy.minFree)
    draft.keep(held, 'its node needs it again');
  else return false;
  return true;
}

/** @returns how many nodes go without */
function lendTo(
  needy: readonly Holding[],
  { name: pool }: ObservedPool,
  unlent: Iterator<OpenSlice>,
  { actions, policy: { minFree } }: Draft,
): number {
  let shortage = 0;
  for (const holding of [...needy].sort(byNeed)) {
    while (holding.kept < minFree) {
      const next = unlent.next();
      if (next.done === true) {
        shortage++;
        break;
      }
      const { cidr: slice, free } = next.value;
      const why = `its blocks have ${holding.kept} free addresses, fewer than ${minFree}`;
      actions.push({ kind: 'lend', pool, slice, node: holding.name, why });
      holding.kept += free;
    }
  }
  return shortage;
}

/** Those with nothing first. */
function byNeed(one: Holding, other: Holding): number {
  return one.kept - other.kept || (one.name < other.name ? -1 : 1);
}
