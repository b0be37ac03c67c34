import { BlockRelease, ReleaseReason } from '../../api/address-block.js';
import type { Family } from '../../addressing/address/address.js';
import type { BlockPolicy, ObservedBlock, ObservedNode, ObservedPool } from './observed-pool.js';

/** The blocks of one pool and family that one node has. The set is empty if the node needs blocks and has none. */
export interface NodeBlockSet {
  readonly nodeName: string;
  readonly node: ObservedNode;
  readonly family: Family;
  /** The node is eligible, and its pods hold addresses of the pool. */
  readonly hasDemand: boolean;
  /** Blocks that may be marked or reclaimed. Blocks that are being released come first. */
  readonly blocks: readonly NodeBlock[];
  /** Free addresses in the blocks that the node keeps, by the decisions made so far. */
  keptFree: number;
}

export interface NodeBlock {
  readonly observed: ObservedBlock;
  readonly blockSet: NodeBlockSet;
  /** Free addresses that the node has by this block: 0 if it is withdrawn. */
  readonly free: number;
  /** Why the node does not need the block; undefined if it does, or if its pods use addresses of it. */
  readonly reclaimReason?: ReleaseReason;
}

const MISSING_NODE: ObservedNode = { exists: false, isEligible: false, leases: { 4: 0, 6: 0 } };

/** @returns one set for each node and family that has blocks or needs some */
export function nodeBlockSetsOf(pool: ObservedPool, policy: BlockPolicy): NodeBlockSet[] {
  return ([4, 6] as const).flatMap((family) => {
    const blocks = groupByNode(pool, family);
    for (const [name, node] of pool.nodes) if (hasDemand(node, family) && !blocks.has(name)) blocks.set(name, []);
    return [...blocks].map(([name, own]) =>
      makeNodeBlockSet({ nodeName: name, node: pool.nodes.get(name) ?? MISSING_NODE, family }, own, pool, policy),
    );
  });
}

/** Whether the block is marked or ready for release, so that its node does not pick from it. */
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
  of: Pick<NodeBlockSet, 'nodeName' | 'node' | 'family'>,
  observedBlocks: readonly ObservedBlock[],
  pool: ObservedPool,
  policy: BlockPolicy,
): NodeBlockSet {
  const blocks: NodeBlock[] = [];
  const blockSet: NodeBlockSet = { ...of, hasDemand: hasDemand(of.node, of.family), blocks, keptFree: 0 };
  let left = 0;
  for (const block of observedBlocks) {
    if (isWithdrawn(block, pool)) continue;
    left += block.free;
    if (!isBeingReleased(block)) blockSet.keptFree += block.free;
  }
  for (const block of [...observedBlocks].sort(releasingFirst)) {
    if (block.record.release === BlockRelease.Refused) continue;
    const reclaimReason = reclaimReasonOf(block, { blockSet, pool, policy, left });
    const free = isWithdrawn(block, pool) ? 0 : block.free;
    if (reclaimReason === ReleaseReason.Excess) left -= free;
    blocks.push({ observed: block, blockSet, free, ...(reclaimReason !== undefined && { reclaimReason }) });
  }
  return blockSet;
}

/** @param left free addresses in the node's blocks that are not found to be in excess */
function reclaimReasonOf(
  block: ObservedBlock,
  { blockSet, pool, policy, left }: { blockSet: NodeBlockSet; pool: ObservedPool; policy: BlockPolicy; left: number },
): ReleaseReason | undefined {
  if (block.used > 0) return undefined;
  if (!blockSet.node.exists) return ReleaseReason.NodeGone;
  if (isWithdrawn(block, pool)) return ReleaseReason.Withdrawn;
  const isSpare = left > policy.maxFree && left - block.size >= policy.minFree;
  return isSpare || !blockSet.hasDemand ? ReleaseReason.Excess : undefined;
}

/** Whether the block or its pool is being deleted, or the pool no longer has this slice. */
function isWithdrawn({ record, isSlice }: ObservedBlock, { phase }: Pick<ObservedPool, 'phase'>): boolean {
  return phase === 'ending' || !isSlice || record.metadata.deletionTimestamp !== undefined;
}

/** Whether the node still has the block. Release states of other versions are not known. */
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
