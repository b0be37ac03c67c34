import type { LeaseRecord, LeaseTimes } from '../../addressing/lease/lease.js';
import { type LeaseRules, minCooldownMs, leaseTimesOf } from '../../addressing/lease/lease-times.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';

/** Returns the times of a lease; undefined if they are unknown, in which case the lease is kept. */
export type LeaseTimesLookup = (lease: LeaseRecord) => LeaseTimes | undefined;

/** Returns a lookup of the times of leases: the minimum if the pool is gone, and none if the pool is invalid, which keeps its leases. */
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
