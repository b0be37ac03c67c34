export type YieldWorker = (wait: () => Promise<void>) => Promise<void>;

/** The limits of the work on one request. */
export interface RequestContext {
  /** Aborts when time is up, and when the agent stops. */
  readonly signal: AbortSignal;
  /** Waits without occupying a worker, so that other requests can run. Absent if the caller does not use workers. */
  readonly yieldWorker?: YieldWorker;
}
