import type { Random } from './clock.js';

export interface BackoffOptions {
  baseMs: number;
  maxMs: number;
  random: Random;
  /** Default 2. With 1.3, a delay is about a third of the time already waited, so that the end of an outage is noticed early. */
  factor?: number;
}

/** Delays that grow while something keeps failing. */
export interface Backoff {
  next(): number;
  reset(): void;
}

/** Exponential backoff. Jitter takes away up to half of each delay, so that clients spread and none retries at once. */
export function backoff(options: BackoffOptions): Backoff {
  let failures = 0;
  return {
    next: () => backoffDelay(options, failures++),
    reset: () => {
      failures = 0;
    },
  };
}

/** Returns the delay after failure number `failures`, counted from 0. */
export function backoffDelay(options: BackoffOptions, failures: number): number {
  const { baseMs, maxMs, random, factor = 2 } = options;
  const ceiling = Math.min(maxMs, baseMs * factor ** failures);
  return (ceiling * (1 + random())) / 2;
}
