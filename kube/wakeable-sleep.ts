import type { Clock } from './clock.js';

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
