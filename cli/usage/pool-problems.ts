import { BAD_POOL_CONDITIONS, PoolCondition } from '../../api/conditions.js';
import type { AddressPool } from '../../api/address-pool.js';
import { type Condition, isBeingDeleted } from '../../api/meta.js';

export type PoolFinding = Pick<Condition, 'type' | 'reason' | 'message'>;

/** False for a pool that is being deleted, unless its leases keep it: a derived pool stays three minutes, and nobody need act. */
export function needsAction(
  { metadata }: Pick<AddressPool, 'metadata'>,
  { type, reason }: Pick<Condition, 'type' | 'reason'>,
) {
  return !isBeingDeleted({ metadata }) || (type === PoolCondition.DeletionBlocked && reason === 'Leased');
}

/** Returns the conditions of a pool that say that somebody should do something. */
export function problemsOf(pool: Pick<AddressPool, 'metadata' | 'status'>): PoolFinding[] {
  return (pool.status?.conditions ?? [])
    .filter((condition) => needsAction(pool, condition))
    .filter(
      ({ type, status: is, reason }) =>
        reason === 'LeasedOutside' || BAD_POOL_CONDITIONS.some((bad) => bad.type === type && bad.status === is),
    )
    .map(({ type, reason, message }) => ({ type, reason, message }));
}
