import { coolingStart } from '../../addressing/lease/cooling-start.js';
import { type LeaseRecord, isReservation, stateOf } from '../../addressing/lease/lease.js';
import type { LeaseTimesLookup } from './lease-times-lookup.js';

/** Released leases that a derived pool keeps. A quota bounds the claims of a tenant, but not how often they are deleted and created again. */
export const MAX_RELEASED_LEASES = 1_024;

export interface ExcessRules {
  /** NADs made the pool, so a tenant decides how long its leases stay. */
  readonly isDerived: (pool: string) => boolean;
  /** No address may be used again earlier, because an agent may still answer with it. */
  readonly minCooldownMs: number;
}

/**
 * Returns the times of leases, in short steps. The oldest released leases beyond the limit of a derived pool only cool down for the minimum time.
 */
export function* timesWithoutExcess(
  leases: readonly LeaseRecord[],
  timesOf: LeaseTimesLookup,
  { isDerived, minCooldownMs }: ExcessRules,
): Generator<undefined, LeaseTimesLookup> {
  const released = new Map<string, LeaseRecord[]>();
  for (const lease of leases) {
    yield;
    if (stateOf(lease) !== 'released' || isReservation(lease)) continue;
    const ofPool = released.get(lease.pool);
    if (ofPool === undefined) released.set(lease.pool, [lease]);
    else ofPool.push(lease);
  }
  const excess = new Set<string>();
  for (const [pool, ofPool] of released) {
    if (ofPool.length <= MAX_RELEASED_LEASES || !isDerived(pool)) continue;
    yield;
    ofPool.sort((a, b) => coolingStart(a) - coolingStart(b));
    for (const { metadata } of ofPool.slice(0, -MAX_RELEASED_LEASES)) excess.add(metadata.uid);
  }
  return (lease) => {
    const times = timesOf(lease);
    return times !== undefined && excess.has(lease.metadata.uid) ? { cooldownMs: minCooldownMs, stickyMs: 0 } : times;
  };
}
