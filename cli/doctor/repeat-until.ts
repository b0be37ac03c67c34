import type { Clock } from '../../kube/clock.js';

/** Between two attempts. */
const PAUSE_MS = 5_000;

/** Tries until an attempt is the end, or until the time is over, at least once. @returns the last value */
export async function repeatUntil<T>(
  timeoutMs: number,
  clock: Pick<Clock, 'now' | 'sleep'>,
  attempt: () => Promise<{ readonly isEnd: boolean; readonly value: T }>,
): Promise<T> {
  const end = clock.now() + timeoutMs;
  for (;;) {
    const { isEnd, value } = await attempt();
    if (isEnd || clock.now() >= end) return value;
    await clock.sleep(Math.min(PAUSE_MS, end - clock.now()));
  }
}
