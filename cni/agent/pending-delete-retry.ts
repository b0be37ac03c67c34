import { setMaxListeners } from 'node:events';
import { backoff } from '../../kube/backoff.js';
import type { Clock, Random } from '../../kube/clock.js';
import { TransportError, messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import type { PendingDeleteMetrics } from './metrics.js';
import type { PendingDeletes, PendingDelete } from './pending-deletes.js';

export interface PendingDeleteRetryOptions {
  readonly pendingDeletes: Pick<PendingDeletes, 'list'>;
  /** Makes a deletion good and removes its note. */
  readonly retryDelete: (note: PendingDelete, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: PendingDeleteMetrics;
}

const BASE_MS = 1_000;
const MAX_MS = 60_000;
/** The plugin writes notes without telling. */
const RESCAN_MS = 30_000;

/** Makes noted deletions good: at the start, soon after each new one, and with back-off while the API server is away. */
export class PendingDeleteRetry {
  readonly #options: PendingDeleteRetryOptions;
  readonly #stop = new AbortController();
  #nap = new AbortController();
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
    this.#nap.abort();
    await this.#running;
  }

  /** There is a new note: look soon, but not before the pause after a failure is over. */
  wake(): void {
    this.#hasWork = true;
    this.#nap.abort();
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#options;
    const pause = backoff({ baseMs: BASE_MS, maxMs: MAX_MS, random });
    while (!this.#stop.signal.aborted) {
      this.#hasWork = false;
      const isDone = await this.#replayAll();
      this.#hasWork ||= !isDone;
      if (isDone) {
        pause.reset();
        await this.#rest();
      }
      // what has just failed hardly succeeds at once, nor what has just been noted
      if (this.#hasWork) await clock.sleep(pause.next(), this.#stop.signal);
    }
  }

  async #rest(): Promise<void> {
    this.#nap = new AbortController();
    if (this.#hasWork || this.#stop.signal.aborted) return;
    await this.#options.clock.sleep(RESCAN_MS, this.#nap.signal);
  }

  /** @returns whether nothing is left */
  async #replayAll(): Promise<boolean> {
    const { pendingDeletes, log, metrics } = this.#options;
    let pending: PendingDelete[];
    try {
      pending = await pendingDeletes.list();
    } catch (error) {
      log.error({ err: error }, `notes of deletions cannot be listed: ${messageOf(error)}`);
      return false;
    }
    let left = pending.length;
    metrics.pending(left);
    for (const note of pending) {
      const outcome = await this.#replayOne(note);
      if (outcome === 'away') break; // nor will it answer the others
      if (outcome === 'done') metrics.pending(--left);
    }
    return left === 0;
  }

  async #replayOne(note: PendingDelete): Promise<'done' | 'failed' | 'away'> {
    const { retryDelete, log } = this.#options;
    try {
      await retryDelete(note, this.#stop.signal);
      log.info({ ...note.target }, 'a noted deletion is made good');
      return 'done';
    } catch (error) {
      if (this.#stop.signal.aborted) return 'away';
      log.warn({ ...note.target, err: error }, `a noted deletion cannot be made good yet: ${messageOf(error)}`);
      return error instanceof TransportError ? 'away' : 'failed';
    }
  }
}
