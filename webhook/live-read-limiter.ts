import type { Clock } from '../kube/clock.js';
import { FairQueue } from './fair-queue.js';

export interface LiveReadLimits {
  /** For all namespaces together. */
  readonly maxConcurrent: number;
  /** Less than {@link maxConcurrent}, so that the reads of one namespace leave room for others. */
  readonly maxConcurrentPerNamespace: number;
  readonly maxQueuedPerNamespace: number;
}

/** A read was not started because too many others are queued or its time is up. */
export class LiveReadLimitError extends Error {
  override readonly name = 'LiveReadLimitError';
}

/** Bounds the live reads of all reviews together. It serves namespaces in turn, so that one cannot delay the reads of others. */
export class LiveReadLimiter {
  readonly #limits: LiveReadLimits;
  readonly #clock: Pick<Clock, 'setTimer'>;
  readonly #queue: FairQueue<() => void>;
  /** How many reads are under way, by namespace. */
  readonly #running = new Map<string, number>();
  #total = 0;

  constructor(limits: LiveReadLimits, clock: Pick<Clock, 'setTimer'>) {
    this.#limits = limits;
    this.#clock = clock;
    this.#queue = new FairQueue(limits.maxQueuedPerNamespace);
  }

  /**
   * Starts the read as soon as the limits allow it.
   * @param waitMs the longest time to wait for the start
   * @throws {LiveReadLimitError} if the read was not started, or the error of the read
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
      if (!this.#queue.add(namespace, start)) {
        reject(new LiveReadLimitError(`too many live reads of namespace ${namespace} are queued`));
        return;
      }
      const cancel = this.#clock.setTimer(waitMs, () => {
        this.#queue.delete(namespace, start);
        reject(new LiveReadLimitError(`earlier live reads of namespace ${namespace} took too long`));
      });
      this.#startNext();
    });
  }

  #startNext(): void {
    const { maxConcurrent, maxConcurrentPerNamespace } = this.#limits;
    const mayStart = (namespace: string) => (this.#running.get(namespace) ?? 0) < maxConcurrentPerNamespace;
    while (this.#total < maxConcurrent) {
      const next = this.#queue.take(mayStart);
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
