import { BAD_POOL_CONDITIONS } from '../../api/conditions.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { Condition } from '../../api/meta.js';

export type PoolFinding = Pick<Condition, 'type' | 'reason' | 'message'>;

/** Returns the conditions of a pool that say that somebody should do something. */
export function problemsOf({ status }: Pick<AddressPool, 'status'>): PoolFinding[] {
  return (status?.conditions ?? [])
    .filter(
      ({ type, status: is, reason }) =>
        reason === 'LeasedOutside' || BAD_POOL_CONDITIONS.some((bad) => bad.type === type && bad.status === is),
    )
    .map(({ type, reason, message }) => ({ type, reason, message }));
}
