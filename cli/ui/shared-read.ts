import type { Clock } from '../../kube/clock.js';
import { reasonOf } from '../forbidden.js';

interface SharedReadOptions {
  readonly clock: Clock;
  /** Called after each read. */
  readonly onRead: () => void;
  /** The pause after a read that took this time, in milliseconds. */
  readonly pauseAfter: (tookMs: number) => number;
  /** Read again after each pause, not only after changes. */
  readonly isPeriodic?: boolean;
}

/** Something that is read for all who look at it, as long as somebody does. It is never read twice at once. */
export class SharedRead<T> {
  /** What the last read that succeeded found. */
  value: T | undefined;
  /** Why the last read failed. */
  failure: string | undefined;
  readonly #read: () => Promise<T>;
  readonly #options: SharedReadOptions;
  readonly #abort = new AbortController();
  #readers = 0;
  #isReading = false;
  #isStale = false;

  constructor(read: () => Promise<T>, options: SharedReadOptions) {
    this.#read = read;
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#readers > 0;
  }

  /** Reads until the returned function is called. */
  open(): () => void {
    this.#readers += 1;
    this.changed();
    return () => {
      this.#readers -= 1;
    };
  }

  /** Called after each change of anything that may be read. */
  changed(): void {
    this.#isStale = true;
    if (!this.#isReading && this.isOpen) void this.#loop();
  }

  stop(): void {
    this.#abort.abort();
  }

  async #loop(): Promise<void> {
    const { clock, onRead, pauseAfter, isPeriodic = false } = this.#options;
    const { signal } = this.#abort;
    this.#isReading = true;
    while ((this.#isStale || isPeriodic) && this.isOpen && !signal.aborted) {
      this.#isStale = false;
      const begin = clock.now();
      try {
        this.value = await this.#read();
        this.failure = undefined;
      } catch (error) {
        this.failure = reasonOf(error);
      }
      onRead();
      await clock.sleep(pauseAfter(clock.now() - begin), signal);
    }
    this.#isReading = false;
  }
}
