import { setMaxListeners } from 'node:events';
import type { Clock } from './clock.js';
import { classifyError, messageOf, retryDelayOf } from './errors.js';
import type { Logger } from './log.js';
import { type KubeMetrics, silentMetrics } from './metrics.js';
import { TimeSlice } from './run-in-slices.js';
import type { WorkQueue } from './workqueue.js';

/**
 * The result of a sync: nothing to do.
 * - `requeueAfterMs`: it succeeded and is to run again after this time, as with RequeueAfter of controller-runtime.
 * - `earlyByMs`: it came too early and tried nothing.
 * - `retry`: it is not finished, for this reason, and is retried with backoff.
 */
export type SyncResult = undefined | { requeueAfterMs: number } | { earlyByMs: number } | { retry: string };

/** Reconciles the object of a key; reads the current state by itself. The signal aborts if a stop takes too long. */
export type Sync =
  | ((key: string, signal: AbortSignal) => Promise<SyncResult>)
  | ((key: string, signal: AbortSignal) => Promise<void>);

interface ControllerLoopOptions {
  name: string;
  queue: WorkQueue;
  workers: number;
  sync: Sync;
  log: Logger;
  clock: Clock;
  metrics?: KubeMetrics;
  /** Delay after an error that only another change can cure. Default 60 000. */
  invalidRetryMs?: number;
  /** How long `stop` waits for running syncs before they are aborted. Default 10 000. */
  graceMs?: number;
}

/** Workers that take keys from a queue and sync them. One worker at a time syncs a key. */
export class ControllerLoop {
  readonly #options: ControllerLoopOptions;
  readonly #log: Logger;
  readonly #metrics: KubeMetrics;
  readonly #abort = new AbortController();
  /** Syncs that await nothing but cached objects never reach the event loop. */
  readonly #slice: TimeSlice;
  #workers: Promise<void>[] = [];
  #stopping = false;

  constructor(options: ControllerLoopOptions) {
    // every running request listens to it, and Node would report a leak
    setMaxListeners(0, this.#abort.signal);
    this.#options = options;
    this.#log = options.log.child({ loop: options.name });
    this.#metrics = options.metrics ?? silentMetrics;
    this.#slice = new TimeSlice(options.clock);
  }

  /** @throws {Error} if it is running or stopped */
  start(): void {
    if (this.#stopping || this.#workers.length > 0) throw new Error(`loop ${this.#options.name} was started before`);
    this.#workers = Array.from({ length: this.#options.workers }, () => this.#work());
  }

  /** Shuts down the queue and finishes running syncs. Waiting keys are dropped. */
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
      if (this.#slice.isOver) await this.#slice.renew();
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
      // earlier failures still count
      queue.addAfter(key, result.earlyByMs);
      return 'early';
    }
    queue.forget(key);
    if (result !== undefined) queue.addAfter(key, result.requeueAfterMs);
    return 'done';
  }

  #refuse(key: string, error: unknown): string {
    const { queue, invalidRetryMs = 60_000 } = this.#options;
    const kind = classifyError(error);
    const fields = { key, retries: queue.retries(key), err: error };
    switch (kind) {
      case 'stale':
        this.#log.debug(fields, `sync used a stale object: ${messageOf(error)}`);
        queue.addRateLimited(key);
        break;
      case 'invalid':
        this.#log.error(fields, `sync was rejected: ${messageOf(error)}`);
        queue.addAfter(key, invalidRetryMs);
        break;
      case 'transient':
        this.#log.warn(fields, `sync failed: ${messageOf(error)}`);
        queue.addRateLimited(key, retryDelayOf(error));
        break;
    }
    return kind;
  }
}
