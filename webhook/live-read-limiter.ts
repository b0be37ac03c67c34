import type { Clock } from '../kube/clock.js';
import { FairQueue } from './fair-queue.js';

export interface LiveReadLimits {
  /** Of all namespaces together. */
  readonly atOnce: number;
  /** Less than {@link atOnce}: what one namespace waits for must leave room for the others. */
  readonly atOncePerNamespace: number;
  readonly waitingPerNamespace: number;
}

/** A read that did not start, because too many others wait or its time was up. */
export class LiveReadLimitError extends Error {
  override readonly name = 'LiveReadLimitError';
}

/** Bounds the live reads of all reviews together. Namespaces take turns, so that the reads of one delay no other's. */
export class LiveReadLimiter {
  readonly #limits: LiveReadLimits;
  readonly #clock: Pick<Clock, 'setTimer'>;
  readonly #waiting: FairQueue<() => void>;
  /** How many reads are under way, by namespace. */
  readonly #running = new Map<string, number>();
  #total = 0;

  constructor(limits: LiveReadLimits, clock: Pick<Clock, 'setTimer'>) {
    this.#limits = limits;
    this.#clock = clock;
    this.#waiting = new FairQueue(limits.waitingPerNamespace);
  }

  /**
   * Starts the read once it is its turn.
   * @param waitMs for how long it may wait for that
   * @throws {LiveReadLimitError} if the read was not started; and what the read throws
   */
  async run<T>(namespace: string, waitMs: number, read: () => Promise<T>): Promise<T> {
    await this.#turn(namespace, waitMs);
    try {
      return await read();
    } finally {
      this.#end(namespace);
    }
  }

  #turn(namespace: string, waitMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = () => {
        cancel();
        resolve();
      };
      if (!this.#waiting.add(namespace, start)) {
        reject(new LiveReadLimitError(`too many live reads of namespace ${namespace} wait already`));
        return;
      }
      const cancel = this.#clock.setTimer(waitMs, () => {
        this.#waiting.delete(namespace, start);
        reject(new LiveReadLimitError(`the live reads of namespace ${namespace} that came before took too long`));
      });
      this.#startNext();
    });
  }

  #startNext(): void {
    const { atOnce, atOncePerNamespace } = this.#limits;
    const mayStart = (namespace: string) => (this.#running.get(namespace) ?? 0) < atOncePerNamespace;
    while (this.#total < atOnce) {
      const next = this.#waiting.take(mayStart);
      if (next === undefined) return;
      this.#total++;
      this.#running.set(next.key, (this.#running.get(next.key) ?? 0) + 1);
      next.item();
    }
  }

  #end(namespace: string): void {
    this.#total--;
    const left = (this.#running.get(namespace) ?? 0) - 1;
    if (left > 0) this.#running.set(namespace, left);
    else this.#running.delete(namespace);
    this.#startNext();
  }
}
