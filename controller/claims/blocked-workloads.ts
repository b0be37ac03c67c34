/** The workloads that wait until a claim of another owner is gone. */
export class BlockedWorkloads {
  readonly #byWorkload = new Map<string, readonly string[]>();
  readonly #byClaim = new Map<string, Set<string>>();

  /** Replaces the claims for which a workload waits. Keys are `namespace/name`. */
  set(workload: string, claims: readonly string[]): void {
    for (const claim of this.#byWorkload.get(workload) ?? []) {
      const waiting = this.#byClaim.get(claim);
      waiting?.delete(workload);
      if (waiting?.size === 0) this.#byClaim.delete(claim);
    }
    this.#byWorkload.delete(workload);
    if (claims.length === 0) return;
    this.#byWorkload.set(workload, claims);
    for (const claim of claims) this.#byClaim.set(claim, (this.#byClaim.get(claim) ?? new Set()).add(workload));
  }

  blockedBy(claim: string): readonly string[] {
    return [...(this.#byClaim.get(claim) ?? [])];
  }
}
