import { writeFile } from 'node:fs/promises';
import { findLibfaketime } from './libfaketime.js';

/** The wall clock of processes, which a test steps while they run. Their monotonic clock is not changed, as by `date --set`. */
export class SteppedClock {
  /** The environment of the processes. */
  readonly env: Readonly<Record<string, string>>;
  readonly #file: string;

  private constructor(library: string, file: string) {
    this.#file = file;
    this.env = {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  /** @throws {Error} without libfaketime */
  static async create(file: string): Promise<SteppedClock> {
    const clock = new SteppedClock(await findLibfaketime(), file);
    await clock.step(0);
    return clock;
  }

  /** Sets the clock to this offset from the machine's. Processes notice it after a second. */
  async step(seconds: number): Promise<void> {
    await writeFile(this.#file, `${seconds < 0 ? '-' : '+'}${String(Math.abs(seconds))}\n`);
  }
}
