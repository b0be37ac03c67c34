import type { Clock } from './clock.js';

/** Enough for a person, and little work however often something changes. */
const INTERVAL_MS = 50;

/** Returns a scheduler that runs work in a later turn of the event loop, at most every 50 ms. */
export function pacedBy(clock: Pick<Clock, 'now' | 'setTimer'>): (run: () => void) => void {
  let earliest = 0;
  return (run) => {
    clock.setTimer(Math.max(0, earliest - clock.now()), () => {
      earliest = clock.now() + INTERVAL_MS;
      run();
    });
  };
}
