import { until } from '../processes/wait.js';
import type { HoldfastProcess } from '../holdfast/process.js';
import type { ClaimLeaseObserver } from '../story/claim-lease-observer.js';
import { patiently } from '../story/patience.js';

/** A process that does not work is killed, too: the API server may be down. */
const LONGEST_LIFE_MS = 5_000;
/** A process is killed after 1 to so many addresses, so that it dies at other moments of its work each time. */
const MOST_ADDRESSES = 8;
/** For the API server, which may restart meanwhile on a busy machine. */
const PATIENCE = { timeoutMs: 180_000 };

/** Kills a process that allocates addresses, again and again, and starts it at once. */
export class KillAtWork {
  readonly #process: HoldfastProcess;
  readonly #observer: ClaimLeaseObserver;
  #kills = 0;

  constructor(process: HoldfastProcess, observer: ClaimLeaseObserver) {
    this.#process = process;
    this.#observer = observer;
  }

  /** The number of kills so far. */
  get kills(): number {
    return this.#kills;
  }

  /** Kills until there were so many kills, or until the signal aborts. In the end the process is ready. */
  async run(count: number, signal: AbortSignal): Promise<void> {
    while (this.#kills < count && !signal.aborted) {
      await this.#waitForWork(signal);
      await this.#process.kill();
      await patiently(() => this.#process.launch(), PATIENCE);
      this.#kills++;
    }
    await this.#process.waitReady();
  }

  async #waitForWork(signal: AbortSignal): Promise<void> {
    const wanted = this.#observer.taken + 1 + (this.#kills % MOST_ADDRESSES);
    const hasWorked = () => this.#observer.taken >= wanted;
    const options = { timeoutMs: LONGEST_LIFE_MS, signal };
    await until('addresses to be taken', hasWorked, options).catch(() => undefined);
  }
}
