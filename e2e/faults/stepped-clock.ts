import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';

/** Where Debian, Ubuntu and Fedora install libfaketime. */
const LIBRARIES = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib64/faketime/libfaketime.so.1',
];

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

  /** @returns undefined if libfaketime is not installed: `apt-get install faketime` */
  static async create(file: string): Promise<SteppedClock | undefined> {
    const library = LIBRARIES.find((path) => existsSync(path));
    if (library === undefined) return undefined;
    const clock = new SteppedClock(library, file);
    await clock.step(0);
    return clock;
  }

  /** Sets the clock to this offset from the machine's. Processes notice it after a second. */
  async step(seconds: number): Promise<void> {
    await writeFile(this.#file, `${seconds < 0 ? '-' : '+'}${String(Math.abs(seconds))}\n`);
  }
}
