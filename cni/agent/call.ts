export type Rest = (wait: () => Promise<void>) => Promise<void>;

/** What bounds the work on one request. */
export interface Call {
  /** Aborts when time is up, and when the agent stops. */
  readonly signal: AbortSignal;
  /** Waits for others to do something, and lets other requests work meanwhile. Absent where nobody else wants to. */
  readonly rest?: Rest;
}
