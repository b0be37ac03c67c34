import type { Family } from '../../../ipam/core/address.js';
import type { Pool } from '../../../ipam/core/pool.js';
import type { RangeSet } from '../../../ipam/core/ranges.js';

/** The same pool with fewer addresses that anybody may have; what may be asked for stays. */
export function restrictPool(pool: Pool, keep: (open: RangeSet, family: Family) => RangeSet): Pool {
  const subnets = pool.subnets.map((subnet) => ({ ...subnet, open: keep(subnet.open, subnet.cidr.family) }));
  return { ...pool, subnets };
}
