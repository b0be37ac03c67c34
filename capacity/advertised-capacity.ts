import { isNewer } from '../kube/resource-version.js';

interface FormerCapacity {
  readonly capacity: number;
  /** In the clock's ms. */
  readonly until: number;
}

interface CapacityWrite extends FormerCapacity {
  /** Of the node with it, once the API server has answered. */
  readonly resourceVersion?: string;
}

/** What was sent and neither answered nor seen is forgotten after this: it never arrived. */
const WRITE_LOST_MS = 60_000;

/**
 * What one node shows of one pool, as this process and as schedulers may know it: they hear of a write when we do, or a little later, and
 * bind pods by what they knew. A number counts until it is seen to be replaced, and for the settle time after that.
 */
export class AdvertisedCapacity {
  readonly #settleMs: number;
  #seen: number | undefined;
  #past: FormerCapacity[] = [];
  /** In the order of sending. */
  #sent: CapacityWrite[] = [];

  constructor(settleMs: number) {
    this.#settleMs = settleMs;
  }

  /** What it shows, or will once the watch has come so far. Nothing is taken as shown that the API server has not answered. */
  get expected(): number | undefined {
    const last = this.#sent.findLast(({ resourceVersion }) => resourceVersion !== undefined);
    return last === undefined ? this.#seen : last.capacity;
  }

  /**
   * What the watch shows.
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
    // what was there, whether the watch has shown it or not, and is not any more
    for (const sent of this.#sent.slice(0, arrived + 1)) this.#past.push({ capacity: sent.capacity, until });
    this.#sent = this.#sent.slice(arrived + 1);
    if (capacity !== this.#seen && this.#seen !== undefined) this.#past.push({ capacity: this.#seen, until });
    this.#seen = capacity;
  }

  /** Before the write. */
  beginWrite(capacity: number, now: number): void {
    this.#sent.push({ capacity, until: now + WRITE_LOST_MS });
  }

  /** The API server has taken what was sent last. */
  writeSucceeded(resourceVersion: string): void {
    const last = this.#sent.pop();
    if (last !== undefined) this.#sent.push({ ...last, resourceVersion });
  }

  /** The API server has said that it did not take what was sent last. */
  writeRejected(): void {
    this.#sent.pop();
  }

  highest(now: number): number {
    this.#forget(now);
    if (this.#isCalm) return Math.max(this.#seen ?? 0, 0);
    return Math.max(this.#seen ?? 0, 0, ...[...this.#past, ...this.#sent].map(({ capacity }) => capacity));
  }

  /** Nothing but what is seen can be believed, as nearly always: there are as many of these as nodes times pools. */
  get #isCalm(): boolean {
    return this.#past.length === 0 && this.#sent.length === 0;
  }

  #forget(now: number): void {
    if (this.#isCalm) return;
    this.#past = this.#past.filter(({ until }) => until > now);
    this.#sent = this.#sent.filter(({ until }) => until > now);
  }
}
