import { isNewer } from '../kube/resource-version.js';

interface Past {
  readonly cap: number;
  /** In the clock's ms. */
  readonly until: number;
}

interface Sent extends Past {
  /** Of the node with it, once the API server has answered. */
  readonly version?: string;
}

/** What was sent and neither answered nor seen is forgotten after this: it never arrived. */
const LOST_MS = 60_000;

/**
 * What one node shows of one pool, as this process and as schedulers may know it: they hear of a write when we do, or a little later, and
 * bind pods by what they knew. A number counts until it is seen to be replaced, and for the settle time after that.
 */
export class Belief {
  readonly #settleMs: number;
  #seen: number | undefined;
  #past: Past[] = [];
  /** In the order of sending. */
  #sent: Sent[] = [];

  constructor(settleMs: number) {
    this.#settleMs = settleMs;
  }

  /** What it shows, or will once the watch has come so far. Nothing is taken as shown that the API server has not answered. */
  get shown(): number | undefined {
    const last = this.#sent.findLast(({ version }) => version !== undefined);
    return last === undefined ? this.#seen : last.cap;
  }

  /**
   * What the watch shows.
   * @param version of the node
   */
  see(cap: number | undefined, version: string, now: number): void {
    this.#forget(now);
    if (this.#isCalm && cap === this.#seen) return;
    const until = now + this.#settleMs;
    const isOver = (sent: Sent) => sent.version !== undefined && !isNewer(sent.version, version);
    const arrived = Math.max(
      this.#sent.findLastIndex(isOver),
      cap === this.#seen ? -1 : this.#sent.findIndex((sent) => sent.cap === cap),
    );
    // what was there, whether the watch has shown it or not, and is not any more
    for (const sent of this.#sent.slice(0, arrived + 1)) this.#past.push({ cap: sent.cap, until });
    this.#sent = this.#sent.slice(arrived + 1);
    if (cap !== this.#seen && this.#seen !== undefined) this.#past.push({ cap: this.#seen, until });
    this.#seen = cap;
  }

  /** Before the write. */
  send(cap: number, now: number): void {
    this.#sent.push({ cap, until: now + LOST_MS });
  }

  /** The API server has taken what was sent last. */
  answered(version: string): void {
    const last = this.#sent.pop();
    if (last !== undefined) this.#sent.push({ ...last, version });
  }

  /** The API server has said that it did not take what was sent last. */
  refused(): void {
    this.#sent.pop();
  }

  most(now: number): number {
    this.#forget(now);
    if (this.#isCalm) return Math.max(this.#seen ?? 0, 0);
    return Math.max(this.#seen ?? 0, 0, ...[...this.#past, ...this.#sent].map(({ cap }) => cap));
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
