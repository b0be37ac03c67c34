import type { LeaseTimes } from '../core/lease.js';
import type { PoolDirectory } from '../pools/directory.js';
import type { TimesOf } from './expiry.js';

/**
 * How long released leases are kept: as their pool says, but never less than twice as long as agents may answer from their caches; where the
 * pool is gone, just that. A pool that is there and cannot be read might say more: its leases stay.
 */
export function leaseTimesBy(directory: Pick<PoolDirectory, 'pool' | 'verdict'>, maxStalenessMs: number): TimesOf {
  const leastMs = 2 * maxStalenessMs;
  return ({ pool: name }): LeaseTimes | undefined => {
    const pool = directory.pool(name);
    if (pool !== undefined) return { cooldownMs: Math.max(pool.cooldownMs, leastMs), stickyMs: pool.stickyMs };
    return directory.verdict(name) === undefined ? { cooldownMs: leastMs, stickyMs: 0 } : undefined;
  };
}
