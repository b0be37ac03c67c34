import { BlockRelease, ReleaseReason } from '../../api/address-block.js';
import type { BlockAction } from './action.js';
import type { NodeBlock } from './node-block-set.js';
import type { BlockPolicy, ObservedBlock } from './observed-pool.js';
import type { BlockState, PlanState } from './plan-state.js';

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
