/** Metrics of this layer. The processes connect them to prom-client. */
export interface KubeMetrics {
  /** One HTTP request; `code` is the status, or `error` without a response. */
  requested(method: string, code: string, seconds: number): void;
  /** One complete list of a kind, all pages. */
  listed(plural: string, seconds: number): void;
  /** A watch ended: `end` by the server, `restart` by its caller, `idle` without data, otherwise the status or the fault. */
  watchEnded(plural: string, reason: string): void;
  /**
   * A watch of a kind was started. `progressedAt` tells up to when all changes have been seen, in ms since the epoch; undefined: never.
   * Returns a function to call when the watch is stopped.
   */
  watching(plural: string, progressedAt: () => number | undefined): () => void;
  /** A handler of an informer failed. */
  handlerFailed(plural: string): void;
  /** The number of keys that wait in a queue. */
  queueDepth(queue: string, depth: number): void;
  /** One call of a loop's sync: `done`, `retry` or the class of the error. */
  synced(loop: string, result: string, seconds: number): void;
  /** Events that were not written: `full` (queue), `rate` (per object) or `failed` (the server). */
  eventDropped(reason: string): void;
}

const noop = () => undefined;

export const silentMetrics: KubeMetrics = {
  requested: noop,
  listed: noop,
  watchEnded: noop,
  watching: () => noop,
  handlerFailed: noop,
  queueDepth: noop,
  synced: noop,
  eventDropped: noop,
};
