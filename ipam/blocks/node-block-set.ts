import { BlockRelease, ReleaseReason } from '../../api/address-block.js';
import type { Family } from '../core/address.js';
import type { BlockPolicy, ObservedBlock, ObservedNode, ObservedPool } from './observed-pool.js';

/** What one node has of a pool's blocks, of one family; nothing, perhaps, though it needs some. */
export interface NodeBlockSet {
  readonly name: string;
  readonly node: ObservedNode;
  readonly family: Family;
  /** Pods of it have addresses, and it may have more. */
  readonly hasDemand: boolean;
  /** Those of whose way back to the pool there is something to decide; the ones that are on it already come first. */
  readonly blocks: readonly NodeBlock[];
  /** Free addresses in the blocks that it has and keeps, for all that is decided so far. */
  keptFree: number;
}

export interface NodeBlock {
  readonly observed: ObservedBlock;
  readonly blockSet: NodeBlockSet;
  /** What its node has by it: nothing where it is withdrawn. */
  readonly free: number;
  /** Why its node does not need it; undefined: it does, or its pods have addresses of it. */
  readonly reclaimReason?: ReleaseReason;
}

const MISSING_NODE: ObservedNode = { isThere: false, isEligible: false, leases: { 4: 0, 6: 0 } };

/** @returns one for each node and family that has blocks, or needs some */
export function nodeBlockSetsOf(pool: ObservedPool, policy: BlockPolicy): NodeBlockSet[] {
  return ([4, 6] as const).flatMap((family) => {
    const blocks = groupByNode(pool, family);
    for (const [name, node] of pool.nodes) if (hasDemand(node, family) && !blocks.has(name)) blocks.set(name, []);
    return [...blocks].map(([name, seen]) =>
      makeNodeBlockSet({ name, node: pool.nodes.get(name) ?? MISSING_NODE, family }, seen, pool, policy),
    );
  });
}

/** Asked for, and given back or not yet answered: its node picks nothing from it. */
export function isBeingReleased({ record: { release } }: ObservedBlock): boolean {
  return release === BlockRelease.Marked || release === BlockRelease.Ready;
}

function groupByNode({ blocks }: ObservedPool, family: Family): Map<string, ObservedBlock[]> {
  const groups = new Map<string, ObservedBlock[]>();
  for (const block of blocks) {
    const { node, cidr } = block.record;
    if (cidr.family !== family || !isLent(block)) continue;
    groups.set(node, [...(groups.get(node) ?? []), block]);
  }
  return groups;
}

function makeNodeBlockSet(
  of: Pick<NodeBlockSet, 'name' | 'node' | 'family'>,
  seen: readonly ObservedBlock[],
  pool: ObservedPool,
  policy: BlockPolicy,
): NodeBlockSet {
  const blocks: NodeBlock[] = [];
  const holding: NodeBlockSet = { ...of, hasDemand: hasDemand(of.node, of.family), blocks, keptFree: 0 };
  let left = 0;
  for (const block of seen) {
    if (isWithdrawn(block, pool)) continue;
    left += block.free;
    if (!isBeingReleased(block)) holding.keptFree += block.free;
  }
  for (const block of [...seen].sort(releasingFirst)) {
    if (block.record.release === BlockRelease.Refused) continue;
    const unwanted = reclaimReasonOf(block, { holding, pool, policy, left });
    const free = isWithdrawn(block, pool) ? 0 : block.free;
    if (unwanted === ReleaseReason.Excess) left -= free;
    blocks.push({
      observed: block,
      blockSet: holding,
      free,
      ...(unwanted !== undefined && { reclaimReason: unwanted }),
    });
  }
  return holding;
}

/** @param left free addresses in all blocks that the node has not been found to have too much of */
function reclaimReasonOf(
  block: ObservedBlock,
  { holding, pool, policy, left }: { holding: NodeBlockSet; pool: ObservedPool; policy: BlockPolicy; left: number },
): ReleaseReason | undefined {
  if (block.used > 0) return undefined;
  if (!holding.node.isThere) return ReleaseReason.NodeGone;
  if (isWithdrawn(block, pool)) return ReleaseReason.Withdrawn;
  const isSpare = left > policy.maxFree && left - block.size >= policy.minFree;
  return isSpare || !holding.hasDemand ? ReleaseReason.Excess : undefined;
}

/** The pool does not want it to be picked from any more, or does not have such a block. */
function isWithdrawn({ record, isSlice }: ObservedBlock, { phase }: Pick<ObservedPool, 'phase'>): boolean {
  return phase === 'ending' || !isSlice || record.metadata.deletionTimestamp !== undefined;
}

/** It is its node's, or on its way back; nothing is known of those that say a word of another version. */
function isLent({ record: { release } }: ObservedBlock): boolean {
  return release !== BlockRelease.Released && release !== 'unknown';
}

function hasDemand({ isEligible, leases }: ObservedNode, family: Family): boolean {
  return isEligible && leases[family] > 0;
}

function releasingFirst(one: ObservedBlock, other: ObservedBlock): number {
  const [first, second] = [isBeingReleased(one), isBeingReleased(other)];
  if (first !== second) return first ? -1 : 1;
  return one.record.metadata.name < other.record.metadata.name ? -1 : 1;
}
