import type { Family } from '../../../addressing/address/address.js';
import type { Pool } from '../../../addressing/pool/pool.js';
import type { RangeSet } from '../../../addressing/address/ranges.js';

/** Returns the pool with fewer open addresses. The addresses that may be requested stay the same. */
export function restrictPool(pool: Pool, keep: (open: RangeSet, family: Family) => RangeSet): Pool {
  const subnets = pool.subnets.map((subnet) => ({ ...subnet, open: keep(subnet.open, subnet.cidr.family) }));
  return { ...pool, subnets };
}
