import type { Clock } from '../kube/clock.js';

interface PeriodicTaskOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  /** The pause between two runs. */
  readonly pauseMs: number;
  /** Handles its own errors. The signal aborts when the task is stopped. */
  readonly run: (signal: AbortSignal) => void | Promise<void>;
}

const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;

/** Returns how often to check for something that must be reported after `afterMs`. */
export function checkIntervalMs(afterMs: number): number {
  return Math.min(Math.max(afterMs / 4, MIN_PAUSE_MS), MAX_PAUSE_MS);
}

/** Runs a task again and again, with a pause after each run. May be started again after a stop. */
export class PeriodicTask {
  readonly #options: PeriodicTaskOptions;
  #abort = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: PeriodicTaskOptions) {
    this.#options = options;
  }

  start(): void {
    this.#abort = new AbortController();
    this.#running = this.#runRepeatedly(this.#abort.signal);
  }

  /** Resolves when the task no longer runs. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#running;
  }

  async #runRepeatedly(signal: AbortSignal): Promise<void> {
    const { clock, pauseMs, run } = this.#options;
    while (!signal.aborted) {
      await run(signal);
      await clock.sleep(pauseMs, signal);
    }
  }
}
