import type { Clock } from './clock.js';

/** A loop's wait until there may be something to do. Being woken counts in advance: what happens while the loop works is not missed. */
export class WakeableSleep {
  readonly #clock: Clock;
  #alarm = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the present wait, or the next one. */
  wake(): void {
    this.#alarm.abort();
  }

  async sleep(ms: number): Promise<void> {
    await this.#clock.sleep(ms, this.#alarm.signal);
    this.#alarm = new AbortController();
  }
}
