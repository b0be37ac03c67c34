import type { AddressLease } from '../api/address-lease.js';
import type { AddressPool } from '../api/address-pool.js';
import type { ObjectMeta } from '../api/meta.js';
import { ADDRESS_LEASES, ADDRESS_POOLS } from '../kube/resources.js';
import type { Watched } from '../process/informers.js';
import { type LeaseRecord, readLease } from './core/lease.js';

/** What only the embedded IPAM follows. Not optional: as long as these kinds are not served, nothing is known of what is leased. */

export const ADDRESS_POOL_WATCH: Watched<AddressPool> = { resource: ADDRESS_POOLS, shrink: shrinkPool };
/** Without indexes: the book of leases has its own, which know what we wrote ourselves. */
export const ADDRESS_LEASE_WATCH: Watched<AddressLease, LeaseRecord> = { resource: ADDRESS_LEASES, shrink: readLease };

/** Pools are written back in part: only the book-keeping of other writers is dropped. */
function shrinkPool(pool: AddressPool): AddressPool {
  const { managedFields: _dropped, ...metadata } = pool.metadata as ObjectMeta & { managedFields?: unknown };
  return { ...pool, metadata };
}
