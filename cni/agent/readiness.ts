/** Whether the agent can serve requests. */
export interface Readiness {
  /** @returns what is missing; undefined if the agent is ready */
  missing(): string | undefined;
  /** Resolves once nothing is missing. */
  synced(): Promise<void>;
}
