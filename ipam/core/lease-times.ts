import type { LeaseTimes } from './lease.js';
import type { Pool } from './pool.js';

/** A released address cools down for so many times as long as agents may answer from their caches. */
const STALENESS_FACTOR = 2;
const MIN_INTERVAL_MS = 100;
const MAX_INTERVAL_MS = 30_000;

/** @returns how long a released address is nobody's, whatever its pool says; in ms */
export function minCooldownMs(maxStalenessMs: number): number {
  return STALENESS_FACTOR * maxStalenessMs;
}

/** @returns as the pool says, but never shorter than agents need to hear of a release; in ms */
export function effectiveCooldownMs({ cooldownMs }: Pick<Pool, 'cooldownMs'>, maxStalenessMs: number): number {
  return Math.max(cooldownMs, minCooldownMs(maxStalenessMs));
}

/** What all pools have in common. */
export interface LeaseRules {
  /** For how long agents may answer from their caches. */
  readonly maxStalenessMs: number;
  /** Whether addresses are kept for their MAC addresses: the gate StickyMAC. */
  readonly stickyMAC: boolean;
}

export function leaseTimesOf(
  pool: Pick<Pool, 'cooldownMs' | 'stickyMs' | 'retainsClaims'>,
  { maxStalenessMs, stickyMAC }: LeaseRules,
): LeaseTimes {
  return {
    cooldownMs: effectiveCooldownMs(pool, maxStalenessMs),
    stickyMs: stickyMAC ? pool.stickyMs : 0,
    retainsClaims: pool.retainsClaims,
  };
}

/** @returns the time between two looks for leaked leases: half as long as a suspicion has to last, within bounds; in ms */
export function collectIntervalMs(collectAfterMs: number): number {
  return Math.min(Math.max(collectAfterMs / 2, MIN_INTERVAL_MS), MAX_INTERVAL_MS);
}
