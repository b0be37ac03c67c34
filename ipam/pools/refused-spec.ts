import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import { type Pool, addressesOf } from '../../addressing/pool/pool.js';

/** The namespaces that a derived pool serves, and its other settings, follow the NAD even if its addresses cannot. */
export function withAddressesOf(
  { spec: { subnets, addressSpace } }: AddressPool,
  spec: AddressPoolSpec,
): AddressPoolSpec {
  const { addressSpace: _asked, ...terms } = spec;
  return { ...terms, subnets, ...(addressSpace !== undefined && { addressSpace }) };
}

/**
 * Returns the spec of a pool that has its addresses without permission. It gets no more, and may lose some.
 * @param hasObstacle it cannot follow its NAD yet
 * @param isDrained it allocates nothing to new owners
 */
export function refusedSpec(
  { spec, pool }: { spec: AddressPoolSpec; pool: Pool },
  { pool: existing, compiled }: { pool: AddressPool; compiled: Pool | undefined },
  { hasObstacle, isDrained }: { hasObstacle: boolean; isDrained: boolean },
): AddressPoolSpec {
  const next = hasObstacle || !isWithin(pool, compiled) ? withAddressesOf(existing, spec) : spec;
  if (!isDrained) return next;
  return { ...next, subnets: next.subnets.map((subnet) => ({ ...subnet, draining: [subnet.cidr] })) };
}

/** Whether all addresses of a pool are in another pool of its address space. */
function isWithin(pool: Pool, other: Pool | undefined): boolean {
  if (other?.addressSpace !== pool.addressSpace) return false;
  return pool.families.every((family) => {
    const missing = addressesOf(pool, family, 'leasable').subtract(addressesOf(other, family, 'leasable'));
    return missing.isEmpty;
  });
}
