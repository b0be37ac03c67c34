import type { Family } from '../../addressing/address/address.js';
import { BlockRelease, ReleaseReason } from '../../api/address-block.js';
import type { BlockAction } from './action.js';
import type { BlockPolicy, BlockState, ObservedBlock, ObservedNode, ObservedPool, PlanState } from './observed-pool.js';

/** Collects the actions of a plan, the state for the next plan, and the time of the next sync. */
export class PlanBuilder {
  readonly actions: BlockAction[] = [];
  readonly now: number;
  readonly policy: BlockPolicy;
  readonly #before: PlanState;
  readonly #after = new Map<string, BlockState>();
  #requeueAt = Number.POSITIVE_INFINITY;

  constructor(before: PlanState, policy: BlockPolicy, now: number) {
    this.#before = before;
    this.policy = policy;
    this.now = now;
  }

  get state(): PlanState {
    return this.#after;
  }

  /** Clock time in ms; undefined if only a change requires another sync. */
  get requeueAt(): number | undefined {
    return this.#requeueAt === Number.POSITIVE_INFINITY ? undefined : this.#requeueAt;
  }

  requeueBy(at: number): void {
    this.#requeueAt = Math.min(this.#requeueAt, at);
  }

  /** Keeps the state of the block for the next plan. */
  keepState({ record: { metadata } }: ObservedBlock): void {
    const before = this.#before.get(metadata.uid);
    if (before !== undefined) this.#after.set(metadata.uid, before);
  }

  /** Accepts the refusal of a node: clears the release state now, and marks the block again only after the delay. */
  acceptRefusal({ record }: ObservedBlock): void {
    this.#after.set(record.metadata.uid, { refusedAt: this.now });
    this.actions.push({ kind: 'abort', block: record, why: 'the node refused, because its pods use the block' });
  }

  /** Aborts the release of a block, so that its node keeps it. */
  abortRelease({ observed, blockSet, free }: NodeBlock, why: string): void {
    this.actions.push({ kind: 'abort', block: observed.record, why });
    blockSet.keptFree += free;
  }

  /** Updates the state of a block. To be called once for each block of {@link nodeBlockSetsOf}. */
  updateState({ observed, reclaimReason: reason }: NodeBlock): void {
    const { uid } = observed.record.metadata;
    const { reclaimable: before, refusedAt } = this.#before.get(uid) ?? {};
    const since = before?.reason === reason ? before?.since : undefined;
    const isRefusalRecent = refusedAt !== undefined && this.now < this.#whenDue(refusedAt);
    const state: BlockState = {
      ...(reason !== undefined && { reclaimable: { since: since ?? this.now, reason } }),
      ...(isRefusalRecent && { refusedAt }),
    };
    if (reason !== undefined || isRefusalRecent) this.#after.set(uid, state);
  }

  /** Whether the block may be marked now for this reason. If not yet, requeues the pool for the time when it may. */
  mayMark({ observed }: NodeBlock, reason: ReleaseReason): boolean {
    const { reclaimable, refusedAt } = this.#after.get(observed.record.metadata.uid) ?? {};
    const since = reason === ReleaseReason.Excess ? reclaimable?.since : refusedAt;
    return since === undefined || this.#isDue(this.#whenDue(since));
  }

  /** Adds the next write of the release handshake, if its time has come. */
  advanceRelease(nodeBlock: NodeBlock, reason: ReleaseReason, why: string): void {
    const { record: block } = nodeBlock.observed;
    if (block.release === undefined) {
      if (this.mayMark(nodeBlock, reason)) this.actions.push({ kind: 'mark', block, reason, why });
      return;
    }
    // an agent that exists can still answer
    const isNodeGone = block.release === BlockRelease.Marked;
    if (isNodeGone && nodeBlock.blockSet.node.exists) return;
    if (this.#mayReclaim(nodeBlock, reason)) this.actions.push({ kind: 'reclaim', block, reason, isNodeGone, why });
  }

  #mayReclaim({ observed }: NodeBlock, reason: ReleaseReason): boolean {
    if (reason === ReleaseReason.Pressure || reason === ReleaseReason.Withdrawn) return true;
    const since = this.#after.get(observed.record.metadata.uid)?.reclaimable?.since ?? this.now;
    return this.#isDue(this.#whenDue(since));
  }

  #isDue(at: number): boolean {
    if (this.now >= at) return true;
    this.requeueBy(at);
    return false;
  }

  #whenDue(since: number): number {
    return since + this.policy.excessDelayMs;
  }
}

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
