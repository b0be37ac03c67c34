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
