import { abortable } from '../../kube/transport/deadline.js';

export type YieldWorker = (wait: () => Promise<void>) => Promise<void>;

/** The limits of the work on one request. */
export interface RequestContext {
  /** Aborts when time is up, and when the agent stops. */
  readonly signal: AbortSignal;
  /** Waits without occupying a worker, so that other requests can run. Absent if the caller does not use workers. */
  readonly yieldWorker?: YieldWorker;
}

/** Waits without a worker, if the request has one. @throws what the wait throws */
export async function waitIdle({ yieldWorker }: RequestContext, wait: () => Promise<void>): Promise<void> {
  await (yieldWorker === undefined ? wait() : yieldWorker(wait));
}

/** The limits of an ADD, and whether it still counts. */
export interface AddContext extends RequestContext {
  /** False once a later sandbox of the pod has sent an ADD for the interface: it may have the leases, and its DEL releases them. */
  readonly isLatest: () => boolean;
}

/**
 * The order in which ADDs for an interface of a pod arrive, which is that of its sandboxes. It is known while one of them is under way: a slow
 * one may come to its lease long after that of a later sandbox has ended.
 */
export class AddOrder {
  readonly #underWay = new Map<string, { begun: number; running: number }>();

  /** Runs the work of an ADD. @param key the pod and its interface */
  async run<T>(key: string, call: RequestContext, add: (call: AddContext) => Promise<T>): Promise<T> {
    const order = this.#underWay.get(key) ?? { begun: 0, running: 0 };
    this.#underWay.set(key, order);
    order.running++;
    const mine = ++order.begun;
    try {
      return await add({ ...call, isLatest: () => mine === order.begun });
    } finally {
      if (--order.running === 0) this.#underWay.delete(key);
    }
  }
}

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
