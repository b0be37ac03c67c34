export type YieldWorker = (wait: () => Promise<void>) => Promise<void>;

/** What bounds the work on one request. */
export interface RequestContext {
  /** Aborts when time is up, and when the agent stops. */
  readonly signal: AbortSignal;
  /** Waits for others to do something, and lets other requests work meanwhile. Absent where nobody else wants to. */
  readonly yieldWorker?: YieldWorker;
}
