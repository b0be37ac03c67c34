import { setImmediate } from 'node:timers';
import type { Clock } from './clock.js';

/** Probes, watches and the renewal of leadership wait so long. */
const SLICE_MS = 20;

/** All work of the process that waits for a turn of the event loop. */
const waiting: (() => void)[] = [];

/** When the first slice of this turn began, by each clock. */
let begun = new WeakMap<object, number>();

/** Waits for a turn of the event loop that no other caller of this function gets, because the work of several would add up to a long block. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(giveTurn);
  });
}

function giveTurn(): void {
  begun = new WeakMap();
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(giveTurn);
}

function beginningOfTurn(clock: Pick<Clock, 'now'>): number {
  const known = begun.get(clock);
  if (known !== undefined) return known;
  const [turn, now] = [begun, clock.now()];
  turn.set(clock, now);
  setImmediate(() => {
    if (begun === turn) begun = new WeakMap();
  });
  return now;
}

/** A part of long work after which the event loop does other work. All work in one turn of the event loop shares the time of a slice. */
export class TimeSlice {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #waiting: (() => void)[] = [];

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
    beginningOfTurn(clock);
  }

  get isOver(): boolean {
    return this.#clock.now() - beginningOfTurn(this.#clock) >= SLICE_MS;
  }

  /** Lets the event loop do other work, such as timers and I/O. Of several callers that wait, each gets a turn of its own. */
  renew(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) void this.#giveTurns();
    });
  }

  /** One after the other: all callers together wait for one turn of the process, not each. */
  async #giveTurns(): Promise<void> {
    while (this.#waiting.length > 0) {
      await nextTurn();
      beginningOfTurn(this.#clock);
      this.#waiting[0]?.();
      this.#waiting.shift();
    }
  }
}

/**
 * Runs a long computation in slices. Between them, the event loop does other work, so objects that the computation reads may change.
 * @param steps yields between short steps
 * @returns undefined if the signal aborts before the end
 */
export function runInSlices<T>(steps: Iterator<undefined, T>, clock: Pick<Clock, 'now'>): Promise<T>;
export function runInSlices<T>(
  steps: Iterator<undefined, T>,
  clock: Pick<Clock, 'now'>,
  signal: AbortSignal | undefined,
): Promise<T | undefined>;
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

/** Calls `run`, which does not reject, for each item, at most `width` at a time. Takes no new item after the signal aborts. */
export async function forEachParallel<T>(
  items: readonly T[],
  concurrency: number,
  run: (item: T) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const left = items.values();
  const work = async () => {
    for (const item of left) {
      if (signal?.aborted) return;
      await run(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work));
}
