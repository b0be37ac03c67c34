import { type FSWatcher, watch } from 'node:fs';
import { type Clock, WakeableSleep } from '../kube/clock.js';

/** Some file systems report no changes. */
const POLL_MS = 30_000;
/** Waits until both files of a pair are written. */
const WRITE_DELAY_MS = 100;

interface FileWatcherOptions {
  directory: string;
  clock: Clock;
  /** Reads the files. Handles its own errors. */
  load: () => Promise<void>;
}

/** Reads files of a directory, and reads them again when they change. */
export class FileWatcher {
  readonly #options: FileWatcherOptions;
  readonly #stopped = new AbortController();
  readonly #nap: WakeableSleep;
  #watcher: FSWatcher | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: FileWatcherOptions) {
    this.#options = options;
    this.#nap = new WakeableSleep(options.clock);
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#nap.wake();
    await this.#running;
    this.#watcher?.close();
  }

  async #run(): Promise<void> {
    const { clock, load } = this.#options;
    while (!this.#stopped.signal.aborted) {
      this.#watch();
      await load();
      await this.#nap.sleep(POLL_MS);
      await clock.sleep(WRITE_DELAY_MS, this.#stopped.signal);
    }
  }

  /** Watches the directory instead of the files, because a mounted Secret is replaced as a whole by a symbolic link. */
  #watch(): void {
    if (this.#watcher !== undefined) return;
    try {
      this.#watcher = watch(this.#options.directory, { persistent: false }, () => this.#nap.wake());
      this.#watcher.on('error', () => {
        this.#watcher?.close();
        this.#watcher = undefined;
      });
    } catch {
      // the directory may not exist yet: polling will find it
    }
  }
}
