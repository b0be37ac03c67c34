import type { Resolution } from '../directory/resolution.js';

/** Longer than it takes to make a pool that its NAD describes. */
const GRACE_PERIOD_MS = 10_000;

/** NAD and VM are often made together: that the NAD's pool is not there yet is no news for anybody. */
export class PoolGracePeriods {
  /** By key of the claim: when it was seen to wait, in ms. */
  readonly #since = new Map<string, number>();

  /** @returns the resolution, uncertain for as long as its pool may still be on its way */
  applyTo(key: string, resolution: Resolution, now: number): Resolution {
    if (resolution.kind !== 'unserved' || resolution.isPoolPending !== true) {
      this.#since.delete(key);
      return resolution;
    }
    if (!this.#since.has(key)) this.#since.set(key, now);
    return this.remainingMs(key, now) > 0 ? { ...resolution, isUncertain: true } : resolution;
  }

  /** @returns for how many ms the claim is left alone; 0: it waits for no pool, or has done so for long enough */
  remainingMs(key: string, now: number): number {
    const since = this.#since.get(key);
    return since === undefined ? 0 : Math.max(0, since + GRACE_PERIOD_MS - now);
  }

  forget(key: string): void {
    this.#since.delete(key);
  }
}
