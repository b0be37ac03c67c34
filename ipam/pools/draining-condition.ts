import { PoolCondition } from '../../api/address-pool.js';
import type { Condition } from '../../api/meta.js';
import { type Pool, hasDraining } from '../../addressing/pool/pool.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { formatLeases } from './named-leases.js';
import type { LeaseCounts } from './usage.js';

/** Says who is still in the draining ranges of a pool. @returns undefined if it has none */
export function drainingCondition(
  pool: Pool,
  { draining }: Pick<LeaseCounts, 'draining'>,
  leaseOf: (name: string) => LeaseRecord | undefined,
): Omit<Condition, 'lastTransitionTime'> | undefined {
  if (!hasDraining(pool)) return undefined;
  const type = PoolCondition.Draining;
  const count = draining.size;
  if (count === 0) {
    const message = 'No address of the draining ranges is in use: remove them from spec.subnets';
    return { type, status: 'False', reason: 'Drained', message };
  }
  const leases = [...draining].flatMap((name) => leaseOf(name) ?? []);
  const subject = count === 1 ? '1 address of the draining ranges is' : `${count} addresses of the draining ranges are`;
  const message =
    `${subject} in use: ${formatLeases(leases, count)}. VMs get other addresses at their next start, pods when they are ` +
    'created again. Delete reservations';
  return { type, status: 'True', reason: 'AddressesInUse', message };
}
