import { type AddressPool, PoolCondition } from '../../api/address-pool.js';
import type { Condition } from '../../api/meta.js';

export type PoolFinding = Pick<Condition, 'type' | 'reason' | 'message'>;

/** The status with which a condition of a pool says that somebody should do something, by its type. */
export const BAD_STATUS: ReadonlyMap<string, 'True' | 'False'> = new Map([
  [PoolCondition.Ready, 'False'],
  [PoolCondition.Conflict, 'True'],
  [PoolCondition.NetworksAgree, 'False'],
  [PoolCondition.NotPermitted, 'True'],
  [PoolCondition.DeletionBlocked, 'True'],
  [PoolCondition.OverlapsOnWire, 'True'],
  [PoolCondition.UsedByOthers, 'True'],
  [PoolCondition.ProbingStopped, 'True'],
]);

/** Returns the conditions of a pool that say that somebody should do something. */
export function problemsOf({ status }: Pick<AddressPool, 'status'>): PoolFinding[] {
  return (status?.conditions ?? [])
    .filter(({ type, status: is, reason }) => BAD_STATUS.get(type) === is || reason === 'LeasedOutside')
    .map(({ type, reason, message }) => ({ type, reason, message }));
}
