import type { Clock } from '../../kube/clock.js';

/** The last signs of life of the watches that the table depends on. Informers are such watches. */
export interface WatchedSource {
  readonly lastProgress: number;
}

/**
 * Knows for how long the table may still be used as if it were current. Its age is that of what it was built from: the cluster as the watch that is
 * furthest behind showed it. Invariant 6 holds for responders as for agents: a released address cools down for at least twice the longest time.
 */
export class Freshness {
  readonly #sources: readonly WatchedSource[];
  readonly #maxStalenessMs: number;
  readonly #clock: Pick<Clock, 'now'>;
  #isCurrent = false;
  /** The table has everything that happened until then. */
  #showsUntil = -Infinity;

  constructor(sources: readonly WatchedSource[], maxStalenessMs: number, clock: Pick<Clock, 'now'>) {
    this.#sources = sources;
    this.#maxStalenessMs = maxStalenessMs;
    this.#clock = clock;
  }

  /** The sources have changed: from now on, the table gets older although they progress. */
  changed(): void {
    this.#isCurrent = false;
  }

  /** The table was built from the sources as they are now. */
  built(): void {
    this.#isCurrent = true;
    this.#follow();
  }

  /** 0: the table is stale. */
  forMs(): number {
    if (this.#isCurrent) this.#follow();
    return Math.max(0, this.#showsUntil + this.#maxStalenessMs - this.#clock.now());
  }

  #follow(): void {
    this.#showsUntil = Math.min(...this.#sources.map(({ lastProgress }) => lastProgress));
  }
}
