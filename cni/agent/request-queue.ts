import { abortable } from '../../kube/transport/deadline.js';
import type { YieldWorker } from './request-context.js';

/** A request that waits for a worker. */
interface QueuedRequest {
  go(): void;
}

/** Runs work on one key one after the other, in order of arrival, and work on all keys with a limited number of workers. */
export class RequestQueue {
  readonly #last = new Map<string, Promise<void>>();
  readonly #waiting = new Set<QueuedRequest>();
  #free: number;

  constructor(workers: number) {
    this.#free = workers;
  }

  /**
   * Runs the work once its key and a worker are free.
   * @param key undefined for work that needs no order
   * @param onFailure called if the work fails or has no turn. The next work on the key waits for it
   * @throws the signal's reason if it aborts before the work begins; after that the work itself must watch the signal
   */
  async run<T>(
    key: string | undefined,
    signal: AbortSignal,
    work: (rest: YieldWorker) => Promise<T>,
    onFailure?: (error: unknown) => Promise<T>,
  ): Promise<T> {
    if (key === undefined) return this.#withWorker(signal, work);
    const before = this.#last.get(key);
    let leave: () => void = () => undefined;
    const mine = new Promise<void>((resolve) => (leave = resolve));
    // cancelled work must not change the order of the others
    const last = before === undefined ? mine : before.then(() => mine);
    this.#last.set(key, last);
    void last.then(() => {
      if (this.#last.get(key) === last) this.#last.delete(key);
    });
    try {
      if (before !== undefined) await abortable(before, signal);
      return await this.#withWorker(signal, work);
    } catch (error) {
      if (onFailure === undefined) throw error;
      return await onFailure(error);
    } finally {
      leave();
    }
  }

  async #withWorker<T>(signal: AbortSignal, work: (rest: YieldWorker) => Promise<T>): Promise<T> {
    await this.#acquire(signal);
    const mine = { isWorking: true };
    const rest: YieldWorker = async (wait) => {
      mine.isWorking = false;
      this.#release();
      await wait();
      // after an abort the work only builds its error, which needs no worker
      mine.isWorking = await this.#acquire(signal).then(
        () => true,
        () => false,
      );
    };
    try {
      return await work(rest);
    } finally {
      if (mine.isWorking) this.#release();
    }
  }

  async #acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    let waiter: QueuedRequest | undefined;
    const called = new Promise<void>((resolve) => this.#waiting.add((waiter = { go: resolve })));
    try {
      await abortable(called, signal);
    } catch (error) {
      // called and aborted at the same moment: pass the worker on
      if (waiter !== undefined && !this.#waiting.delete(waiter)) this.#release();
      throw error;
    }
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next.go();
  }
}
