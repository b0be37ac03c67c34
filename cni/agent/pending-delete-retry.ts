import { setMaxListeners } from 'node:events';
import { backoff } from '../../kube/retry.js';
import type { Clock, Random } from '../../kube/clock.js';
import { TransportError, messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import type { PendingDeleteMetrics } from './metrics.js';
import type { PendingDeletes, PendingDelete } from './pending-deletes.js';

export interface PendingDeleteRetryOptions {
  readonly pendingDeletes: Pick<PendingDeletes, 'list'>;
  /** Carries out a pending delete and removes its file. */
  readonly retryDelete: (note: PendingDelete, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: PendingDeleteMetrics;
}

const BASE_MS = 1_000;
const MAX_MS = 60_000;
/** The plugin also writes pending deletes, without a notification. */
const RESCAN_MS = 30_000;

/** Retries pending deletes: at the start, soon after each new one, and with back-off while the API server is not available. */
export class PendingDeleteRetry {
  readonly #options: PendingDeleteRetryOptions;
  readonly #stop = new AbortController();
  #sleep = new AbortController();
  #hasWork = false;
  #running: Promise<void> | undefined;

  constructor(options: PendingDeleteRetryOptions) {
    this.#options = options;
    setMaxListeners(0, this.#stop.signal);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#sleep.abort();
    await this.#running;
  }

  /** Announces a new pending delete. A back-off after a failure still ends first. */
  wake(): void {
    this.#hasWork = true;
    this.#sleep.abort();
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#options;
    const pause = backoff({ baseMs: BASE_MS, maxMs: MAX_MS, random });
    while (!this.#stop.signal.aborted) {
      this.#hasWork = false;
      const isDone = await this.#retryAll();
      this.#hasWork ||= !isDone;
      if (isDone) {
        pause.reset();
        await this.#rescanDelay();
      }
      // an immediate retry would most likely fail again
      if (this.#hasWork) await clock.sleep(pause.next(), this.#stop.signal);
    }
  }

  async #rescanDelay(): Promise<void> {
    this.#sleep = new AbortController();
    if (this.#hasWork || this.#stop.signal.aborted) return;
    await this.#options.clock.sleep(RESCAN_MS, this.#sleep.signal);
  }

  /** @returns whether no pending delete is left */
  async #retryAll(): Promise<boolean> {
    const { pendingDeletes, log, metrics } = this.#options;
    let pending: PendingDelete[];
    try {
      pending = await pendingDeletes.list();
    } catch (error) {
      log.error({ err: error }, `cannot list the pending deletes: ${messageOf(error)}`);
      return false;
    }
    let left = pending.length;
    metrics.pending(left);
    for (const note of pending) {
      const outcome = await this.#retryOne(note);
      if (outcome === 'away') break; // the others would fail, too
      if (outcome === 'done') metrics.pending(--left);
    }
    return left === 0;
  }

  async #retryOne(note: PendingDelete): Promise<'done' | 'failed' | 'away'> {
    const { retryDelete, log } = this.#options;
    try {
      await retryDelete(note, this.#stop.signal);
      log.info({ ...note.target }, 'pending delete carried out');
      return 'done';
    } catch (error) {
      if (this.#stop.signal.aborted) return 'away';
      log.warn({ ...note.target, err: error }, `a pending delete failed and is retried: ${messageOf(error)}`);
      return error instanceof TransportError ? 'away' : 'failed';
    }
  }
}
