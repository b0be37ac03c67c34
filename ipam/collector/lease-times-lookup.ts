import type { LeaseTimes } from '../core/lease.js';
import { type LeaseRules, minCooldownMs, leaseTimesOf } from '../core/lease-times.js';
import type { PoolDirectory } from '../directory/directory.js';
import type { LeaseTimesLookup } from './expiry.js';

/** How long released leases are kept. Where the pool is gone, as short as may be; one that is there and cannot be read might say more: its leases stay. */
export function leaseTimesLookup(
  directory: Pick<PoolDirectory, 'pool' | 'stateOf'>,
  rules: LeaseRules,
): LeaseTimesLookup {
  return ({ pool: name }): LeaseTimes | undefined => {
    const pool = directory.pool(name);
    if (pool !== undefined) return leaseTimesOf(pool, rules);
    return directory.stateOf(name) === undefined
      ? { cooldownMs: minCooldownMs(rules.maxStalenessMs), stickyMs: 0 }
      : undefined;
  };
}
