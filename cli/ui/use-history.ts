/** The samples that are kept of each pool. */
const MAX_SAMPLES = 240;
/** The first interval; it doubles each time when there are {@link MAX_SAMPLES}. */
const FIRST_INTERVAL_MS = 5_000;
/** The use of further pools is not recorded. */
const MAX_POOLS = 2_000;

/** The use of pools since the server was started. When it is full, every second sample is dropped, so that its size is bounded and it still reaches to the start. */
export class PoolUseHistory {
  readonly #used = new Map<string, (number | null)[]>();
  #times: number[] = [];
  #intervalMs = FIRST_INTERVAL_MS;

  /** When to take the next sample, after the one before. */
  get intervalMs(): number {
    return this.#intervalMs;
  }

  /** Milliseconds since the epoch of the samples. */
  get times(): readonly number[] {
    return this.#times;
  }

  /** Adds one sample of all pools. @param wall milliseconds since the epoch */
  sample(wall: number, pools: Iterable<{ readonly name: string; readonly used: number | undefined }>): void {
    if (this.#times.length === MAX_SAMPLES) this.#thinOut();
    const now = new Map([...pools].map(({ name, used }) => [name, used ?? null]));
    const unknown = this.#times.map(() => null);
    for (const name of now.keys())
      if (this.#used.size < MAX_POOLS && !this.#used.has(name)) this.#used.set(name, unknown);
    this.#times = [...this.#times, wall];
    for (const [name, samples] of this.#used) {
      // of a pool that is gone, nothing is kept
      if (now.has(name)) this.#used.set(name, [...samples, now.get(name) ?? null]);
      else this.#used.delete(name);
    }
  }

  of(pool: string): readonly (number | null)[] {
    return this.#used.get(pool) ?? [];
  }

  #thinOut(): void {
    const isKept = (_sample: unknown, index: number) => index % 2 === 0;
    this.#times = this.#times.filter(isKept);
    for (const [name, samples] of this.#used) this.#used.set(name, samples.filter(isKept));
    this.#intervalMs *= 2;
  }
}
