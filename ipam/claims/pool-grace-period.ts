import type { Resolution } from '../../addressing/directory/resolution.js';

/** Longer than it takes to create the pool that a NAD describes. */
const GRACE_PERIOD_MS = 10_000;

/** Grace periods for pools that do not exist yet: NAD and VM are often created together, so a missing pool is not reported at once. */
export class PoolGracePeriods {
  /** By claim key: when the claim was first seen waiting, in ms. */
  readonly #since = new Map<string, number>();

  /** @returns the resolution, marked as uncertain during the grace period */
  applyTo(key: string, resolution: Resolution, now: number): Resolution {
    if (resolution.kind !== 'unserved' || resolution.isPoolPending !== true) {
      this.#since.delete(key);
      return resolution;
    }
    if (!this.#since.has(key)) this.#since.set(key, now);
    return this.remainingMs(key, now) > 0 ? { ...resolution, isUncertain: true } : resolution;
  }

  /** @returns the ms left of the grace period; 0 if the claim waits for no pool or has waited long enough */
  remainingMs(key: string, now: number): number {
    const since = this.#since.get(key);
    return since === undefined ? 0 : Math.max(0, since + GRACE_PERIOD_MS - now);
  }

  forget(key: string): void {
    this.#since.delete(key);
  }
}
