import { isNewer } from '../kube/resource-version.js';

interface FormerCapacity {
  readonly capacity: number;
  /** Clock time in ms. */
  readonly until: number;
}

interface CapacityWrite extends FormerCapacity {
  /** The resourceVersion of the node after the write, once the API server has answered. */
  readonly resourceVersion?: string;
}

/** A write without an answer that the watch does not show counts as lost after this time. */
const WRITE_LOST_MS = 60_000;

/**
 * The capacity that one node advertises for one pool, as this process and schedulers may see it. A scheduler may see a write later than this
 * process and bind pods by the old value. So an old value counts until the watch shows a newer one, and for the settle time after that.
 */
export class AdvertisedCapacity {
  readonly #settleMs: number;
  #seen: number | undefined;
  #past: FormerCapacity[] = [];
  /** In the order of the writes. */
  #sent: CapacityWrite[] = [];

  constructor(settleMs: number) {
    this.#settleMs = settleMs;
  }

  /** The value of the last write that the API server has answered, else the value that the watch shows. */
  get expected(): number | undefined {
    const last = this.#sent.findLast(({ resourceVersion }) => resourceVersion !== undefined);
    return last === undefined ? this.#seen : last.capacity;
  }

  /**
   * Records the value that the watch shows.
   * @param resourceVersion of the node
   */
  observe(capacity: number | undefined, resourceVersion: string, now: number): void {
    this.#forget(now);
    if (this.#isCalm && capacity === this.#seen) return;
    const until = now + this.#settleMs;
    const isOver = (sent: CapacityWrite) =>
      sent.resourceVersion !== undefined && !isNewer(sent.resourceVersion, resourceVersion);
    const arrived = Math.max(
      this.#sent.findLastIndex(isOver),
      capacity === this.#seen ? -1 : this.#sent.findIndex((sent) => sent.capacity === capacity),
    );
    // values that were stored before, even if the watch has not shown them
    for (const sent of this.#sent.slice(0, arrived + 1)) this.#past.push({ capacity: sent.capacity, until });
    this.#sent = this.#sent.slice(arrived + 1);
    if (capacity !== this.#seen && this.#seen !== undefined) this.#past.push({ capacity: this.#seen, until });
    this.#seen = capacity;
  }

  /** To be called before a write. */
  beginWrite(capacity: number, now: number): void {
    this.#sent.push({ capacity, until: now + WRITE_LOST_MS });
  }

  /** Records that the last write succeeded. */
  writeSucceeded(resourceVersion: string): void {
    const last = this.#sent.pop();
    if (last !== undefined) this.#sent.push({ ...last, resourceVersion });
  }

  /** Records that the API server rejected the last write. */
  writeRejected(): void {
    this.#sent.pop();
  }

  highest(now: number): number {
    this.#forget(now);
    if (this.#isCalm) return Math.max(this.#seen ?? 0, 0);
    return Math.max(this.#seen ?? 0, 0, ...[...this.#past, ...this.#sent].map(({ capacity }) => capacity));
  }

  /** Whether schedulers can only see the current value. Usually true, and checked first: there is one object per node and pool. */
  get #isCalm(): boolean {
    return this.#past.length === 0 && this.#sent.length === 0;
  }

  #forget(now: number): void {
    if (this.#isCalm) return;
    this.#past = this.#past.filter(({ until }) => until > now);
    this.#sent = this.#sent.filter(({ until }) => until > now);
  }
}
