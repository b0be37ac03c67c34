import { BlockRelease, type BlockStatusPatch, ReleaseReason } from '../../../api/address-block.js';
import type { Address, Family } from '../../../addressing/address/address.js';
import { type BlockRecord, answerBlock, isUsable } from '../../../addressing/block/block.js';
import { containsAddress, rangesOf } from '../../../addressing/address/cidr.js';
import type { RangeSet } from '../../../addressing/address/ranges.js';
import type { ObjectChange } from '../../../kube/informers/informer.js';

/** An address that a pod of this node has, or may get by a write under way. */
interface AddressUse {
  /** Name of the lease's pool. */
  readonly pool: string;
  readonly address: Address;
}

/** A block as the watch last showed it, and the state of the answer to it. */
interface LentBlock {
  readonly record: BlockRecord;
  isBeingAnswered: boolean;
  /** The earliest time of the next answer, in the clock's ms. */
  notBefore: number;
  failures: number;
}

/** The result of writing an answer. `lost`: the block has changed or is deleted; `unknown`: no reply, or a temporary error. */
export type AnswerOutcome = 'done' | 'lost' | 'unknown';

/** How long to wait for the watch after an answer that was done or lost. If it shows no change by then, the answer is repeated. */
const WATCH_GRACE_MS = 60_000;
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/**
 * The blocks of a node, and the node's half of the release handshake. Pure: time, watch events and leases come in by method calls; it
 * returns the ranges to pick from and the answers to write.
 *
 * Only the last watch event decides from which blocks addresses are picked. A block that is marked for release drops out as soon as its
 * event is delivered, and comes back only with a later event. The answer is decided when it is written, so no pick can overtake it.
 */
export class LentBlocks {
  readonly #answerIntervalMs: number;
  /** By name. */
  readonly #blocks = new Map<string, LentBlock>();
  /** By the reason of the use: a lease, a write under way, or a write with an unknown result. */
  readonly #uses = new Map<string, AddressUse>();
  /** By pool: incremented when one of its blocks changes. */
  readonly #revisions = new Map<string, number>();
  #areLeasesKnown = false;
  /** Start of the last round of answers. */
  #roundAt = Number.NEGATIVE_INFINITY;

  /** @param answerIntervalMs between two rounds of answers that are not urgent */
  constructor(answerIntervalMs: number) {
    this.#answerIntervalMs = answerIntervalMs;
  }

  /** Takes a change of a block. Call it in the order of the API server, beginning with a consistent list. */
  observe({ type, object }: Pick<ObjectChange<BlockRecord>, 'type' | 'object'>): void {
    const { name } = object.metadata;
    if (type === 'removed') this.#blocks.delete(name);
    else this.#blocks.set(name, { record: object, isBeingAnswered: false, notBefore: 0, failures: 0 });
    this.#revisions.set(object.pool, this.revisionOf(object.pool) + 1);
  }

  /** Records that all leases of the node's pods were added as uses. Before this every block counts as used, and none is answered. */
  setLeasesKnown(): void {
    this.#areLeasesKnown = true;
  }

  /**
   * Marks an address as used until {@link removeUse}.
   * @param by the reason: a held lease, a write under way, or a write with an unknown result. A second call replaces the first.
   */
  addUse(by: string, use: AddressUse): void {
    this.#uses.set(by, use);
  }

  removeUse(by: string): void {
    this.#uses.delete(by);
  }

  /** Whether a pod of this node has an address of the block, or may get one by a write under way. */
  isInUse({ pool, cidr }: Pick<BlockRecord, 'pool' | 'cidr'>): boolean {
    if (!this.#areLeasesKnown) return true;
    return [...this.#uses.values()].some((use) => use.pool === pool && containsAddress(cidr, use.address));
  }

  all(): readonly BlockRecord[] {
    return [...this.#blocks.values()].map(({ record }) => record);
  }

  /** Returns a number that changes with the results of {@link usable} and {@link withheld} for the pool. */
  revisionOf(pool: string): number {
    return this.#revisions.get(pool) ?? 0;
  }

  /** Returns the ranges from which addresses may be picked now. */
  usable(pool: string, family: Family): RangeSet {
    return this.#rangesOf(pool, family, isUsable).subtract(this.withheld(pool, family));
  }

  /** Returns the ranges of the node's blocks that must not be used: marked for release, released, or in an unknown state. */
  withheld(pool: string, family: Family): RangeSet {
    return this.#rangesOf(pool, family, (block) => !isUsable(block));
  }

  /**
   * Returns the blocks to answer now. Urgent ones come at once, the others in rounds.
   * @param now in the clock's ms
   */
  answersDue(now: number): readonly BlockRecord[] {
    return this.#unanswered().flatMap((lent) => (this.#dueAt(lent) <= now ? [lent.record] : []));
  }

  /** Returns when {@link answersDue} next returns a block, in the clock's ms, as far as is known now. */
  nextAnswerAt(): number | undefined {
    const times = this.#unanswered().map((lent) => this.#dueAt(lent));
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /**
   * Decides the answer for a block by the current uses. Send the write without awaiting anything before it, then call {@link answered}.
   * @returns undefined if there is nothing to answer any more
   */
  answer({ metadata }: BlockRecord, now: number): BlockStatusPatch | undefined {
    const lent = this.#unanswered().find(({ record }) => record.metadata.name === metadata.name);
    if (lent?.record.metadata.resourceVersion !== metadata.resourceVersion) return undefined;
    lent.isBeingAnswered = true;
    if (!isUrgent(lent.record) && this.#nextRoundAt <= now) this.#roundAt = now;
    return answerBlock(lent.record, !this.isInUse(lent.record));
  }

  /** Records the result of an answer. It is ignored if the block has changed since {@link answer}. */
  answered({ metadata: { name, resourceVersion } }: BlockRecord, outcome: AnswerOutcome, now: number): void {
    const lent = this.#blocks.get(name);
    if (lent?.record.metadata.resourceVersion !== resourceVersion) return;
    lent.isBeingAnswered = false;
    lent.failures = outcome === 'unknown' ? lent.failures + 1 : 0;
    const retryMs = Math.min(RETRY_MS * 2 ** (lent.failures - 1), MAX_RETRY_MS);
    lent.notBefore = now + (outcome === 'unknown' ? retryMs : WATCH_GRACE_MS);
  }

  #unanswered(): LentBlock[] {
    if (!this.#areLeasesKnown) return [];
    return [...this.#blocks.values()].filter(
      ({ record, isBeingAnswered }) => record.release === BlockRelease.Marked && !isBeingAnswered,
    );
  }

  get #nextRoundAt(): number {
    return this.#roundAt + this.#answerIntervalMs;
  }

  #dueAt({ record, notBefore }: LentBlock): number {
    return isUrgent(record) ? notBefore : Math.max(notBefore, this.#nextRoundAt);
  }

  #rangesOf(pool: string, family: Family, which: (block: BlockRecord) => boolean): RangeSet {
    const blocks = this.all().filter((block) => block.pool === pool && which(block));
    return rangesOf(
      blocks.map(({ cidr }) => cidr),
      family,
    );
  }
}

/** Whether another node or a claim waits for the block. */
function isUrgent({ reason }: BlockRecord): boolean {
  return reason !== ReleaseReason.Excess;
}
