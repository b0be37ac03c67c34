/** Time as a parameter. No other code in Holdfast reads the clock or sets timers. */
export interface Clock {
  /**
   * Milliseconds of a monotonic clock, for ages, deadlines and intervals. It begins at the time of day when the process starts, and is not
   * set with it. The clock stops while the machine is suspended.
   */
  now(): number;
  /** Milliseconds since the epoch, by a clock that may be set: only for times in objects, certificates and files. */
  wall(): number;
  /** Resolves after `ms`, at most 24 days, or early and without an error once `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `run` once after `ms`, at most 24 days; the returned function cancels it. */
  setTimer(ms: number, run: () => void): () => void;
}

/** A number in [0, 1), as Math.random. */
export type Random = () => number;

/** Node runs a timer with a longer delay at once. Callers look again when they wake early. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Returns a delay that a timer keeps. One that is no number would also run at once. */
function timerMs(ms: number): number {
  return ms <= MAX_TIMER_MS ? ms : MAX_TIMER_MS;
}

/** {@link Clock.now} begins at the time of day, so that 0 ("never") is long ago even if the process has just started. */
const STARTED = performance.timeOrigin;

export const systemClock: Clock = {
  now: () => Math.floor(STARTED + performance.now()),
  wall: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const finish = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', finish);
        resolve();
      };
      const timer = setTimeout(finish, timerMs(ms));
      signal?.addEventListener('abort', finish, { once: true });
    }),
  setTimer: (ms, run) => {
    const timer = setTimeout(run, timerMs(ms));
    return () => clearTimeout(timer);
  },
};

/** A sleep of a loop that can be ended early. A wake-up while the loop works ends its next sleep, so that none is missed. */
export class WakeableSleep {
  readonly #clock: Clock;
  #alarm = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the current sleep, or else the next one. */
  wake(): void {
    this.#alarm.abort();
  }

  async sleep(ms: number): Promise<void> {
    await this.#clock.sleep(ms, this.#alarm.signal);
    this.#alarm = new AbortController();
  }
}

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
