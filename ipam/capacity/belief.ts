interface Past {
  readonly cap: number;
  /** In milliseconds since the epoch. */
  readonly until: number;
}

/** What was sent and never seen is forgotten after this: the answer was lost, and so was what it was about. */
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
  #sent: Past[] = [];

  constructor(settleMs: number) {
    this.#settleMs = settleMs;
  }

  /** What it shows, or will once the watch has come so far. */
  get shown(): number | undefined {
    const last = this.#sent.at(-1);
    return last === undefined ? this.#seen : last.cap;
  }

  /** What the watch shows. */
  see(cap: number | undefined, now: number): void {
    this.#forget(now);
    if (cap === this.#seen) return;
    const until = now + this.#settleMs;
    if (this.#seen !== undefined) this.#past.push({ cap: this.#seen, until });
    this.#seen = cap;
    const index = this.#sent.findIndex((sent) => sent.cap === cap);
    // those before it were there, and are not any more
    for (const { cap: earlier } of this.#sent.slice(0, index + 1)) this.#past.push({ cap: earlier, until });
    if (index >= 0) this.#sent = this.#sent.slice(index + 1);
  }

  /** Before the write. */
  send(cap: number, now: number): void {
    this.#sent.push({ cap, until: now + LOST_MS });
  }

  /** The API server has said that it did not take what was sent last, or that it stood there already. */
  unsend(): void {
    this.#sent.pop();
  }

  most(now: number): number {
    this.#forget(now);
    return Math.max(this.#seen ?? 0, 0, ...[...this.#past, ...this.#sent].map(({ cap }) => cap));
  }

  #forget(now: number): void {
    this.#past = this.#past.filter(({ until }) => until > now);
    this.#sent = this.#sent.filter(({ until }) => until > now);
  }
}
