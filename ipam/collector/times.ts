import type { LeaseTimes } from '../core/lease.js';
import { type LeaseRules, leastCooldownMs, leaseTimesOf } from '../core/lease-times.js';
import type { PoolDirectory } from '../directory/directory.js';
import type { TimesOf } from './expiry.js';

/** How long released leases are kept. Where the pool is gone, as short as may be; one that is there and cannot be read might say more: its leases stay. */
export function leaseTimesBy(directory: Pick<PoolDirectory, 'pool' | 'verdict'>, rules: LeaseRules): TimesOf {
  return ({ pool: name }): LeaseTimes | undefined => {
    const pool = directory.pool(name);
    if (pool !== undefined) return leaseTimesOf(pool, rules);
    return directory.verdict(name) === undefined
      ? { cooldownMs: leastCooldownMs(rules.maxStalenessMs), stickyMs: 0 }
      : undefined;
  };
}
