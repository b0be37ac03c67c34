import { BlockRelease, ReleaseReason } from '../../api/address-block.js';
import type { BlockAction } from './action.js';
import type { NodeBlock } from './node-block-set.js';
import type { BlockPolicy, ObservedBlock } from './observed-pool.js';
import type { BlockState, PlanState } from './plan-state.js';

/** A plan in the making: what is written, what is remembered, and when to look again. */
export class PlanBuilder {
  readonly actions: BlockAction[] = [];
  readonly now: number;
  readonly policy: BlockPolicy;
  readonly #before: PlanState;
  readonly #after = new Map<string, BlockState>();
  #lookAt = Number.POSITIVE_INFINITY;

  constructor(before: PlanState, policy: BlockPolicy, now: number) {
    this.#before = before;
    this.policy = policy;
    this.now = now;
  }

  get state(): PlanState {
    return this.#after;
  }

  /** In the clock's ms; undefined: only a change calls for another look. */
  get requeueAt(): number | undefined {
    return this.#lookAt === Number.POSITIVE_INFINITY ? undefined : this.#lookAt;
  }

  requeueBy(at: number): void {
    this.#lookAt = Math.min(this.#lookAt, at);
  }

  /** What is remembered of it stays as it is. */
  keepState({ record: { metadata } }: ObservedBlock): void {
    const before = this.#before.get(metadata.uid);
    if (before !== undefined) this.#after.set(metadata.uid, before);
  }

  /** Its node has refused: it is cleared at once, and not asked for again before the delay has passed. */
  acceptRefusal({ record }: ObservedBlock): void {
    this.#after.set(record.metadata.uid, { refusedAt: this.now });
    this.actions.push({ kind: 'keep', block: record, why: 'its node has pods that use it' });
  }

  /** What was asked of its node is asked no more. */
  abortRelease({ observed, blockSet, free }: NodeBlock, why: string): void {
    this.actions.push({ kind: 'keep', block: observed.record, why });
    blockSet.keptFree += free;
  }

  /** To be called once for every block of which there is something to decide. */
  updateState({ observed, reclaimReason: reason }: NodeBlock): void {
    const { uid } = observed.record.metadata;
    const { unwanted: before, refusedAt } = this.#before.get(uid) ?? {};
    const since = before?.reason === reason ? before?.since : undefined;
    const isStillSore = refusedAt !== undefined && this.now < this.#whenDue(refusedAt);
    const memory: BlockState = {
      ...(reason !== undefined && { unwanted: { since: since ?? this.now, reason } }),
      ...(isStillSore && { refusedAt }),
    };
    if (reason !== undefined || isStillSore) this.#after.set(uid, memory);
  }

  /** It may be asked for now, for this reason; where it may not yet, it is looked at when it may. */
  mayMark({ observed }: NodeBlock, reason: ReleaseReason): boolean {
    const { unwanted, refusedAt } = this.#after.get(observed.record.metadata.uid) ?? {};
    const since = reason === ReleaseReason.Excess ? unwanted?.since : refusedAt;
    return since === undefined || this.#isDue(this.#whenDue(since));
  }

  /** Writes the next step of its way back, if it is time for it. */
  advanceRelease(held: NodeBlock, reason: ReleaseReason, why: string): void {
    const { record: block } = held.observed;
    if (block.release === undefined) {
      if (this.mayMark(held, reason)) this.actions.push({ kind: 'mark', block, reason, why });
      return;
    }
    // whoever was there to answer may have answered
    const isNodeGone = block.release === BlockRelease.Marked;
    if (isNodeGone && held.blockSet.node.isThere) return;
    if (this.#mayTake(held, reason)) this.actions.push({ kind: 'take-back', block, reason, isNodeGone, why });
  }

  #mayTake({ observed }: NodeBlock, reason: ReleaseReason): boolean {
    if (reason === ReleaseReason.Pressure || reason === ReleaseReason.Withdrawn) return true;
    const since = this.#after.get(observed.record.metadata.uid)?.unwanted?.since ?? this.now;
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
