import { isNewer } from '../api/meta.js';

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
  #current: number | undefined;
  #former: FormerCapacity[] = [];
  /** In the order of the writes. */
  #writes: CapacityWrite[] = [];

  constructor(settleMs: number) {
    this.#settleMs = settleMs;
  }

  /** The value of the last write that the API server has answered, else the value that the watch shows. */
  get expected(): number | undefined {
    const last = this.#writes.findLast(({ resourceVersion }) => resourceVersion !== undefined);
    return last === undefined ? this.#current : last.capacity;
  }

  /**
   * Records the value that the watch shows.
   * @param resourceVersion of the node
   */
  observe(capacity: number | undefined, resourceVersion: string, now: number): void {
    this.#forget(now);
    if (this.#isSettled && capacity === this.#current) return;
    const until = now + this.#settleMs;
    const isOver = (sent: CapacityWrite) =>
      sent.resourceVersion !== undefined && !isNewer(sent.resourceVersion, resourceVersion);
    const arrived = Math.max(
      this.#writes.findLastIndex(isOver),
      capacity === this.#current ? -1 : this.#writes.findIndex((sent) => sent.capacity === capacity),
    );
    // values that were stored before, even if the watch has not shown them
    for (const sent of this.#writes.slice(0, arrived + 1)) this.#former.push({ capacity: sent.capacity, until });
    this.#writes = this.#writes.slice(arrived + 1);
    if (capacity !== this.#current && this.#current !== undefined)
      this.#former.push({ capacity: this.#current, until });
    this.#current = capacity;
  }

  /** To be called before a write. */
  beginWrite(capacity: number, now: number): void {
    this.#writes.push({ capacity, until: now + WRITE_LOST_MS });
  }

  /** Records that the last write succeeded. */
  writeSucceeded(resourceVersion: string): void {
    const last = this.#writes.pop();
    if (last !== undefined) this.#writes.push({ ...last, resourceVersion });
  }

  /** Records that the API server rejected the last write. */
  writeRejected(): void {
    this.#writes.pop();
  }

  highest(now: number): number {
    this.#forget(now);
    if (this.#isSettled) return Math.max(this.#current ?? 0, 0);
    return Math.max(this.#current ?? 0, 0, ...[...this.#former, ...this.#writes].map(({ capacity }) => capacity));
  }

  /** Whether schedulers can only see the current value. Usually true, and checked first: there is one object per node and pool. */
  get #isSettled(): boolean {
    return this.#former.length === 0 && this.#writes.length === 0;
  }

  #forget(now: number): void {
    if (this.#isSettled) return;
    this.#former = this.#former.filter(({ until }) => until > now);
    this.#writes = this.#writes.filter(({ until }) => until > now);
  }
}
