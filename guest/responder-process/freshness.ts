import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { ADDRESS_POOLS } from '../../kube/resources.js';

/** A source that limits the age of the table: the watch of an informer, or the live reads. */
interface FreshnessSource {
  /** Everything until then is known, in the clock's ms; 0: nothing. */
  readonly lastProgress: number;
}

/** The sources when a table began to be built. */
export interface TableStart {
  readonly showsUntil: number;
  readonly changes: number;
}

/**
 * Knows for how long the table may still be used as if it were current. Its age is that of what it was built from: the cluster as the source that is
 * furthest behind showed it. Invariant 6 holds for responders as for agents: a released address cools down for at least twice the longest time.
 */
export class Freshness {
  readonly #sources: readonly FreshnessSource[];
  readonly #maxStalenessMs: number;
  readonly #clock: Pick<Clock, 'now'>;
  #changes = 0;
  #isCurrent = false;
  /** The table has everything that happened until then. */
  #showsUntil = -Infinity;

  constructor(sources: readonly FreshnessSource[], maxStalenessMs: number, clock: Pick<Clock, 'now'>) {
    this.#sources = sources;
    this.#maxStalenessMs = maxStalenessMs;
    this.#clock = clock;
  }

  /** The sources have changed: from now on, the table gets older although they progress. */
  changed(): void {
    this.#changes++;
    this.#isCurrent = false;
  }

  /** A table is going to be built, which takes some time. It has at least everything that the sources show now. */
  begin(): TableStart {
    return { showsUntil: this.#sourcesShowUntil(), changes: this.#changes };
  }

  built({ showsUntil, changes }: TableStart): void {
    this.#isCurrent = changes === this.#changes;
    this.#showsUntil = showsUntil;
  }

  hasChangedSince({ changes }: TableStart): boolean {
    return changes !== this.#changes;
  }

  /** 0: the table is stale. */
  forMs(): number {
    if (this.#isCurrent) this.#showsUntil = this.#sourcesShowUntil();
    return Math.max(0, this.#showsUntil + this.#maxStalenessMs - this.#clock.now());
  }

  #sourcesShowUntil(): number {
    return Math.min(...this.#sources.map(({ lastProgress }) => lastProgress));
  }
}

const READ_MS = 5_000;

interface LiveReadsOptions {
  readonly client: Pick<Client, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Pick<Logger, 'warn'>;
  readonly pool: string;
}

/**
 * Reads of the pool that etcd answers. An API server that is cut off from etcd goes on to serve watches, with bookmarks by a
 * timer, from a cache that gets older unnoticed; but it cannot answer these.
 */
export class LiveReads implements FreshnessSource {
  readonly #options: LiveReadsOptions;
  #lastProgress = 0;

  constructor(options: LiveReadsOptions) {
    this.#options = options;
  }

  /** When the last successful read began, in the clock's ms; 0: never. */
  get lastProgress(): number {
    return this.#lastProgress;
  }

  async read(signal: AbortSignal): Promise<void> {
    const { client, clock, log, pool } = this.#options;
    const started = clock.now();
    try {
      await client.get(ADDRESS_POOLS, { name: pool }, { signal, deadlineMs: READ_MS });
      this.#lastProgress = started;
    } catch (error) {
      if (!signal.aborted) log.warn({ pool }, `the table gets stale: ${messageOf(error)}`);
    }
  }
}
