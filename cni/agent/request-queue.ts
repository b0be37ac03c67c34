import { abortable } from '../../kube/abortable.js';
import type { YieldWorker } from './request-context.js';

/** What resolves once somebody may go on, and how to leave the line before. */
interface QueuedRequest {
  go(): void;
}

/** Work on one key is done in the order in which it came, one at a time; on all keys, by so many at once. */
export class RequestQueue {
  readonly #last = new Map<string, Promise<void>>();
  readonly #line = new Set<QueuedRequest>();
  #free: number;

  constructor(workers: number) {
    this.#free = workers;
  }

  /**
   * @param key none for work that disturbs nobody
   * @throws the signal's reason where it aborts before the work begins; from then on the work itself has to listen to it
   */
  async run<T>(key: string | undefined, signal: AbortSignal, work: (rest: YieldWorker) => Promise<T>): Promise<T> {
    if (key === undefined) return this.#withWorker(signal, work);
    const before = this.#last.get(key);
    let leave: () => void = () => undefined;
    const mine = new Promise<void>((resolve) => (leave = resolve));
    // whoever gives up leaves the others in their order
    const last = before === undefined ? mine : before.then(() => mine);
    this.#last.set(key, last);
    void last.then(() => {
      if (this.#last.get(key) === last) this.#last.delete(key);
    });
    try {
      if (before !== undefined) await abortable(before, signal);
      return await this.#withWorker(signal, work);
    } finally {
      leave();
    }
  }

  async #withWorker<T>(signal: AbortSignal, work: (rest: YieldWorker) => Promise<T>): Promise<T> {
    await this.#take(signal);
    const mine = { isWorking: true };
    const rest: YieldWorker = async (wait) => {
      mine.isWorking = false;
      this.#give();
      await wait();
      // whose time is up has nothing left to do but to say so
      mine.isWorking = await this.#take(signal).then(
        () => true,
        () => false,
      );
    };
    try {
      return await work(rest);
    } finally {
      if (mine.isWorking) this.#give();
    }
  }

  async #take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    let waiter: QueuedRequest | undefined;
    const called = new Promise<void>((resolve) => this.#line.add((waiter = { go: resolve })));
    try {
      await abortable(called, signal);
    } catch (error) {
      // called at the same moment: the next one shall go
      if (waiter !== undefined && !this.#line.delete(waiter)) this.#give();
      throw error;
    }
  }

  #give(): void {
    const [next] = this.#line;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#line.delete(next);
    next.go();
  }
}
