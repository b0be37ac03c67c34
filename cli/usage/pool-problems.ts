import { type AddressPool, PoolCondition } from '../../api/address-pool.js';
import type { Condition } from '../../api/meta.js';

export type PoolProblem = Pick<Condition, 'type' | 'reason' | 'message'>;

/** The status with which a condition says that somebody should do something. */
const BAD_STATUS: Readonly<Partial<Record<string, Condition['status']>>> = {
  [PoolCondition.Ready]: 'False',
  [PoolCondition.Conflict]: 'True',
  [PoolCondition.NetworksAgree]: 'False',
  [PoolCondition.NotPermitted]: 'True',
  [PoolCondition.DeletionBlocked]: 'True',
  [PoolCondition.OverlapsOnWire]: 'True',
  [PoolCondition.ProbingStopped]: 'True',
};

/** Returns the conditions of a pool that say that somebody should do something. */
export function problemsOf({ status }: Pick<AddressPool, 'status'>): PoolProblem[] {
  return (status?.conditions ?? [])
    .filter(
      ({ type, status: is, reason }) =>
        (Object.hasOwn(BAD_STATUS, type) && BAD_STATUS[type] === is) || reason === 'LeasedOutside',
    )
    .map(({ type, reason, message }) => ({ type, reason, message }));
}
