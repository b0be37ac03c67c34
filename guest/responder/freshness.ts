import type { Clock } from '../../kube/clock.js';

/** The last signs of life of the watches that the table depends on. Informers are such watches. */
export interface WatchedSource {
  readonly lastProgress: number;
}

/**
 * Returns for how many milliseconds the table may still be used as if it were current; 0: it is stale. Invariant 6 holds for responders as for
 * agents: a released address cools down for at least twice the longest time.
 */
export function freshForMs(
  sources: readonly WatchedSource[],
  maxStalenessMs: number,
  clock: Pick<Clock, 'now'>,
): number {
  const oldest = Math.min(...sources.map(({ lastProgress }) => lastProgress));
  return Math.max(0, oldest + maxStalenessMs - clock.now());
}
