import { setMaxListeners } from 'node:events';
import type { Clock } from './clock.js';
import { classifyError, messageOf, retryDelayOf } from './errors.js';
import type { Logger } from './log.js';
import { type KubeMetrics, silentMetrics } from './metrics.js';
import type { WorkQueue } from './workqueue.js';

/**
 * What became of a key: nothing more to do; look again after a while, though all is well; it came too early, and nothing was tried;
 * or (`retry`, a reason) it could not be finished yet and is tried again with back-off.
 */
export type SyncResult = undefined | { retryAfterMs: number } | { earlyByMs: number } | { retry: string };

/** Brings the object of a key to its desired state; reads the current state by itself. The signal aborts a stop that takes too long. */
export type Sync =
  ((key: string, signal: AbortSignal) => Promise<SyncResult>) | ((key: string, signal: AbortSignal) => Promise<void>);

export interface ControllerLoopOptions {
  name: string;
  queue: WorkQueue;
  workers: number;
  sync: Sync;
  log: Logger;
  clock: Clock;
  metrics?: KubeMetrics;
  /** Delay after an error that only a change by somebody else can cure. Default 60 000. */
  invalidRetryMs?: number;
  /** How long `stop` waits for running syncs before it aborts them. Default 10 000. */
  graceMs?: number;
}

/** Workers that take keys from a queue and sync them, each key with one worker at a time. */
export class ControllerLoop {
  readonly #options: ControllerLoopOptions;
  readonly #log: Logger;
  readonly #metrics: KubeMetrics;
  readonly #abort = new AbortController();
  #workers: Promise<void>[] = [];
  #stopping = false;

  constructor(options: ControllerLoopOptions) {
    // every request under way listens to it: Node would take that for a leak
    setMaxListeners(0, this.#abort.signal);
    this.#options = options;
    this.#log = options.log.child({ loop: options.name });
    this.#metrics = options.metrics ?? silentMetrics;
  }

  /** @throws {Error} where it runs already or is stopped */
  start(): void {
    if (this.#stopping || this.#workers.length > 0) throw new Error(`loop ${this.#options.name} was started before`);
    this.#workers = Array.from({ length: this.#options.workers }, () => this.#work());
  }

  /** Shuts the queue down, finishes what is running and leaves what only waits. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#options.queue.shutDown();
    const cancel = this.#options.clock.setTimer(this.#options.graceMs ?? 10_000, () => this.#abort.abort());
    await Promise.all(this.#workers);
    cancel();
  }

  async #work(): Promise<void> {
    const { queue } = this.#options;
    for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
      if (!this.#stopping) await this.#syncOne(key);
      queue.done(key);
    }
  }

  async #syncOne(key: string): Promise<void> {
    const { clock, sync, name } = this.#options;
    const started = clock.now();
    let outcome: string;
    try {
      const result = await sync(key, this.#abort.signal);
      outcome = this.#accept(key, result as SyncResult);
    } catch (error) {
      outcome = this.#refuse(key, error);
    }
    this.#metrics.synced(name, outcome, (clock.now() - started) / 1000);
  }

  #accept(key: string, result: SyncResult): string {
    const { queue } = this.#options;
    if (result !== undefined && 'retry' in result) {
      this.#log.debug({ key, reason: result.retry, retries: queue.retries(key) }, 'sync is not finished');
      queue.addRateLimited(key);
      return 'retry';
    }
    if (result !== undefined && 'earlyByMs' in result) {
      // what failed before has not succeeded
      queue.addAfter(key, result.earlyByMs);
      return 'early';
    }
    queue.forget(key);
    if (result !== undefined) queue.addAfter(key, result.retryAfterMs);
    return 'done';
  }

  #refuse(key: string, error: unknown): string {
    const { queue, invalidRetryMs = 60_000 } = this.#options;
    const kind = classifyError(error);
    const fields = { key, retries: queue.retries(key), err: error };
    switch (kind) {
      case 'stale':
        this.#log.debug(fields, `sync decided on an old view: ${messageOf(error)}`);
        queue.addRateLimited(key);
        break;
      case 'invalid':
        this.#log.error(fields, `sync is refused: ${messageOf(error)}`);
        queue.addAfter(key, invalidRetryMs);
        break;
      case 'transient':
        this.#log.warn(fields, `sync failed: ${messageOf(error)}`);
        this.#retryLater(key, error);
        break;
    }
    return kind;
  }

  #retryLater(key: string, error: unknown): void {
    const { queue } = this.#options;
    const afterMs = retryDelayOf(error);
    if (afterMs === undefined) queue.addRateLimited(key);
    else queue.addAfter(key, afterMs);
  }
}
