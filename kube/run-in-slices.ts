import { setImmediate } from 'node:timers';
import type { Clock } from './clock.js';

/** Probes, watches and the renewal of leadership wait so long. */
const SLICE_MS = 20;

/** All work of the process that waits for a turn of the event loop. One turn has one slice, because several would add up to a long block. */
const waiting: (() => void)[] = [];

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(giveTurn);
  });
}

function giveTurn(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(giveTurn);
}

/** A part of long work after which the event loop does other work. */
export class TimeSlice {
  readonly #clock: Pick<Clock, 'now'>;
  #startedAt: number;
  #renewal: Promise<void> | undefined;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  get isOver(): boolean {
    return this.#clock.now() - this.#startedAt >= SLICE_MS;
  }

  /** Lets the event loop do other work, such as timers and I/O, and begins a new slice, which all callers that wait share. */
  renew(): Promise<void> {
    this.#renewal ??= this.#renew();
    return this.#renewal;
  }

  async #renew(): Promise<void> {
    await nextTurn();
    this.#startedAt = this.#clock.now();
    this.#renewal = undefined;
  }
}

/**
 * Runs a long computation in slices. Between them, the event loop does other work, so objects that the computation reads may change.
 * @param steps yields between short steps
 * @returns undefined if the signal aborts before the end
 */
export async function runInSlices<T>(
  steps: Iterator<undefined, T>,
  clock: Pick<Clock, 'now'>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  // a caller that starts several computations gives each a turn of its own
  await nextTurn();
  const slice = new TimeSlice(clock);
  while (signal?.aborted !== true) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (slice.isOver) await slice.renew();
  }
  return undefined;
}

/** Runs a computation in one go, for callers whose input is small. */
export function runAtOnce<T>(steps: Iterator<undefined, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Calls `visit` for each element, in slices.
 * @returns false if the signal aborts before the end
 */
export async function forEachInSlices<T>(
  elements: Iterable<T>,
  visit: (element: T) => void,
  clock: Pick<Clock, 'now'>,
  signal?: AbortSignal,
): Promise<boolean> {
  function* steps(): Generator<undefined, true> {
    for (const element of elements) {
      visit(element);
      yield;
    }
    return true;
  }
  return (await runInSlices(steps(), clock, signal)) ?? false;
}
