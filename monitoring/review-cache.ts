import type { Clock } from '../kube/clock.js';
import { setMostRecent } from '../kube/cache.js';

export interface ReviewCacheOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** How long an answer is valid. */
  readonly acceptedMs: number;
  readonly rejectedMs: number;
  /** Beyond this number, the least recently used protected answers are dropped. */
  readonly maxProtected: number;
  /** Beyond this number, the oldest other answers are dropped. */
  readonly maxOthers: number;
}

interface Answer<T> {
  /** undefined: rejected. */
  readonly value: T | undefined;
  readonly until: number;
}

/** Remembers answers of the API server, and asks only once for what several requests want to know at the same time. */
export class ReviewCache<T> {
  readonly #options: ReviewCacheOptions;
  readonly #protected = new Map<string, Answer<T>>();
  readonly #others = new Map<string, Answer<T>>();
  readonly #running = new Map<string, Promise<T | undefined>>();

  constructor(options: ReviewCacheOptions) {
    this.#options = options;
  }

  /**
   * @param review asks the API server; undefined: rejected. An error is not remembered
   * @returns undefined if the API server rejects it
   */
  async resolve(key: string, review: () => Promise<T | undefined>): Promise<T | undefined> {
    const known = this.#protected.get(key) ?? this.#others.get(key);
    if (known !== undefined && this.#options.clock.now() < known.until) return known.value;
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const started = this.#review(key, review).finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }

  /** Call it for each use of an answer that gave access. Any number of other answers does not displace it. */
  protect(key: string): void {
    const answer = this.#protected.get(key) ?? this.#others.get(key);
    if (answer === undefined) return;
    this.#others.delete(key);
    setMostRecent(this.#protected, key, answer, this.#options.maxProtected);
  }

  async #review(key: string, review: () => Promise<T | undefined>): Promise<T | undefined> {
    const { clock, acceptedMs, rejectedMs, maxOthers } = this.#options;
    const value = await review();
    const until = clock.now() + (value === undefined ? rejectedMs : acceptedMs);
    this.#protected.delete(key);
    setMostRecent(this.#others, key, { value, until }, maxOthers);
    return value;
  }
}
