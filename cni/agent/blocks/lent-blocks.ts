import { BlockRelease, type BlockWrite, ReleaseReason } from '../../../api/address-block.js';
import type { Address, Family } from '../../../ipam/core/address.js';
import { type BlockRecord, answerBlock, isUsable } from '../../../ipam/core/block.js';
import { containsAddress, rangesOf } from '../../../ipam/core/cidr.js';
import type { RangeSet } from '../../../ipam/core/ranges.js';
import type { ObjectChange } from '../../../kube/informer.js';

/** An address that a pod of this node has, or may come to have. */
export interface AddressUse {
  /** Of the lease, by name. */
  readonly pool: string;
  readonly address: Address;
}

/** What the watch told last of a block, and what is being said of it. */
interface LentBlock {
  readonly record: BlockRecord;
  isBeingAnswered: boolean;
  /** Not to be answered, again, before this; in the clock's ms. */
  notBefore: number;
  failures: number;
}

/**
 * What became of an answer: `done`; `lost`: the block had changed, or was gone; `unknown`: there was no reply, or the API server did not
 * take it for now.
 */
export type AnswerOutcome = 'done' | 'lost' | 'unknown';

/** After an answer that was done or lost the watch tells of it: only where that fails for so long is the block answered for again. */
const WATCH_GRACE_MS = 60_000;
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/**
 * The blocks of a node, and its half of the handshake by which they go back to their pools. Pure: it is told of time, of what the watch
 * shows and of what is leased, and says what may be picked from and what is to be answered.
 *
 * From which blocks addresses are picked depends on nothing but what the watch told last: a block that is asked for drops out in the very
 * turn in which it is told of, and whatever becomes of the answers to it, it comes back only with a later word of the API server's. So the
 * answer, which is decided in the turn in which it is written, cannot be overtaken by a pick.
 */
export class LentBlocks {
  readonly #answerIntervalMs: number;
  /** By name. */
  readonly #blocks = new Map<string, LentBlock>();
  /** By what makes an address one that is used: its lease, a write that is under way, a doubt. */
  readonly #uses = new Map<string, AddressUse>();
  /** By pool: grows whenever one of its blocks is another, or says something else. */
  readonly #revisions = new Map<string, number>();
  #areLeasesKnown = false;
  /** When the last round of answers began. */
  #roundAt = Number.NEGATIVE_INFINITY;

  /** @param answerIntervalMs between rounds of answers that have time */
  constructor(answerIntervalMs: number) {
    this.#answerIntervalMs = answerIntervalMs;
  }

  /** To be told of in the order in which the API server has it, beginning with a consistent list. */
  observe({ type, object }: Pick<ObjectChange<BlockRecord>, 'type' | 'object'>): void {
    const { name } = object.metadata;
    if (type === 'removed') this.#blocks.delete(name);
    else this.#blocks.set(name, { record: object, isBeingAnswered: false, notBefore: 0, failures: 0 });
    this.#revisions.set(object.pool, this.revisionOf(object.pool) + 1);
  }

  /** All leases of pods of this node have been told of as uses. Until then every block counts as used, and nothing is answered. */
  setLeasesKnown(): void {
    this.#areLeasesKnown = true;
  }

  /**
   * The address is used, or may come to be.
   * @param by what makes it so, until {@link removeUse}: a held lease, a write under way or in doubt. Told again, it replaces what was told.
   */
  addUse(by: string, use: AddressUse): void {
    this.#uses.set(by, use);
  }

  removeUse(by: string): void {
    this.#uses.delete(by);
  }

  /** A pod of this node has an address of the block, or may come to have one. */
  isInUse({ pool, cidr }: Pick<BlockRecord, 'pool' | 'cidr'>): boolean {
    if (!this.#areLeasesKnown) return true;
    return [...this.#uses.values()].some((use) => use.pool === pool && containsAddress(cidr, use.address));
  }

  all(): readonly BlockRecord[] {
    return [...this.#blocks.values()].map(({ record }) => record);
  }

  /** Other for each change of what {@link usable} and {@link withheld} say of the pool. */
  revisionOf(pool: string): number {
    return this.#revisions.get(pool) ?? 0;
  }

  /** What may be picked from, now. */
  usable(pool: string, family: Family): RangeSet {
    return this.#rangesOf(pool, family, isUsable).subtract(this.withheld(pool, family));
  }

  /** What this node must leave alone though it is its own: it is asked for, or given back, or says what nobody here understands. */
  withheld(pool: string, family: Family): RangeSet {
    return this.#rangesOf(pool, family, (block) => !isUsable(block));
  }

  /**
   * The blocks that are to be answered for now. Those that have time come in rounds, the others at once.
   * @param now in the clock's ms
   */
  answersDue(now: number): readonly BlockRecord[] {
    return this.#unanswered().flatMap((lent) => (this.#dueAt(lent) <= now ? [lent.record] : []));
  }

  /** When {@link answersDue} next has something, as things are; in the clock's ms. */
  nextAnswerAt(): number | undefined {
    const times = this.#unanswered().map((lent) => this.#dueAt(lent));
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /**
   * Decides on the answer to a block, by what is used at this moment: it is to be written in the same turn, and {@link answered} must follow.
   * @returns undefined where there is nothing to answer any more
   */
  answer({ metadata }: BlockRecord, now: number): BlockWrite | undefined {
    const lent = this.#unanswered().find(({ record }) => record.metadata.name === metadata.name);
    if (lent?.record.metadata.resourceVersion !== metadata.resourceVersion) return undefined;
    lent.isBeingAnswered = true;
    if (!isUrgent(lent.record) && this.#nextRoundAt <= now) this.#roundAt = now;
    return answerBlock(lent.record, !this.isInUse(lent.record));
  }

  /** @param block as it was when {@link answer} decided; what is known of it since stands */
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

/** Somebody waits for it. */
function isUrgent({ reason }: BlockRecord): boolean {
  return reason !== ReleaseReason.Excess;
}
