/** What is missed before requests can be worked on. */
export interface Readiness {
  /** @returns undefined where nothing is missing */
  missing(): string | undefined;
  /** Resolves once nothing is missing. */
  synced(): Promise<void>;
}
