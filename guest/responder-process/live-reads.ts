import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { ADDRESS_POOLS } from '../../kube/resources.js';
import type { FreshnessSource } from './freshness.js';

const READ_MS = 5_000;

export interface LiveReadsOptions {
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
