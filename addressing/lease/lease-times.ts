import type { LeaseTimes } from './lease.js';
import type { Pool } from '../pool/pool.js';

/** The shortest cool-down, as a multiple of the time for which agents may answer from their caches. */
const STALENESS_FACTOR = 2;
const MIN_INTERVAL_MS = 100;
const MAX_INTERVAL_MS = 30_000;

/**
 * How long ipam keeps the lease of a pod after its time, in milliseconds: the agent of the node allocates it to the next pod. That costs one
 * write, and not the deletion of one object and the creation of another.
 */
export const REUSE_MS = 10_000;

/** Returns the shortest cool-down that a pool can have, in milliseconds. */
export function minCooldownMs(maxStalenessMs: number): number {
  return STALENESS_FACTOR * maxStalenessMs;
}

/** Returns the cool-down of a pool in milliseconds, never shorter than {@link minCooldownMs}. */
export function effectiveCooldownMs({ cooldownMs }: Pick<Pool, 'cooldownMs'>, maxStalenessMs: number): number {
  return Math.max(cooldownMs, minCooldownMs(maxStalenessMs));
}

/** Settings of the process that apply to the leases of all pools. */
export interface LeaseRules {
  /** How long agents may answer from their caches. */
  readonly maxStalenessMs: number;
  /** The feature gate StickyMAC. */
  readonly stickyMAC: boolean;
}

export function leaseTimesOf(
  pool: Pick<Pool, 'cooldownMs' | 'stickyMs' | 'isStickyForClaims'>,
  { maxStalenessMs, stickyMAC }: LeaseRules,
): LeaseTimes {
  return {
    cooldownMs: effectiveCooldownMs(pool, maxStalenessMs),
    stickyMs: stickyMAC ? pool.stickyMs : 0,
    isStickyForClaims: pool.isStickyForClaims,
  };
}

/** Returns the time between two searches for leaked leases, in milliseconds: half of the delay before a candidate is checked, within bounds. */
export function collectIntervalMs(collectAfterMs: number): number {
  return Math.min(Math.max(collectAfterMs / 2, MIN_INTERVAL_MS), MAX_INTERVAL_MS);
}

/** Returns the times that apply if no other address is free: only the cool-down counts. */
export function timesWhenExhausted(times: LeaseTimes): LeaseTimes {
  return { cooldownMs: times.cooldownMs, stickyMs: 0 };
}
