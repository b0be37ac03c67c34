import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from './clock.js';

/** Probes, watches and the renewal of leadership wait so long. */
const SLICE_MS = 20;

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
  let startedAt = clock.now();
  while (signal?.aborted !== true) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (clock.now() - startedAt < SLICE_MS) continue;
    await nextTurn();
    startedAt = clock.now();
  }
  return undefined;
}
