import type { Clock } from '../kube/clock.js';
import { setMostRecent } from '../kube/lru.js';

export interface ReviewCacheOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** How long an answer is valid. */
  readonly acceptedMs: number;
  readonly rejectedMs: number;
  /** Beyond these numbers, the least recently reviewed answers are dropped. They are separate, so that rejected clients drop no accepted ones. */
  readonly maxAccepted: number;
  readonly maxRejected: number;
}

interface Accepted<T> {
  readonly value: T;
  readonly until: number;
}

/** Remembers answers of the API server, and asks only once for what several requests want to know at the same time. */
export class ReviewCache<T> {
  readonly #options: ReviewCacheOptions;
  readonly #accepted = new Map<string, Accepted<T>>();
  readonly #rejectedUntil = new Map<string, number>();
  readonly #running = new Map<string, Promise<T | undefined>>();

  constructor(options: ReviewCacheOptions) {
    this.#options = options;
  }

  /**
   * @param review asks the API server; undefined: rejected. An error is not remembered
   * @returns undefined if the API server rejects it
   */
  async resolve(key: string, review: () => Promise<T | undefined>): Promise<T | undefined> {
    const now = this.#options.clock.now();
    const known = this.#accepted.get(key);
    if (known !== undefined && now < known.until) return known.value;
    if (now < (this.#rejectedUntil.get(key) ?? 0)) return undefined;
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const started = this.#review(key, review).finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }

  async #review(key: string, review: () => Promise<T | undefined>): Promise<T | undefined> {
    const { clock, acceptedMs, rejectedMs, maxAccepted, maxRejected } = this.#options;
    const value = await review();
    this.#accepted.delete(key);
    this.#rejectedUntil.delete(key);
    if (value === undefined) setMostRecent(this.#rejectedUntil, key, clock.now() + rejectedMs, maxRejected);
    else setMostRecent(this.#accepted, key, { value, until: clock.now() + acceptedMs }, maxAccepted);
    return value;
  }
}
