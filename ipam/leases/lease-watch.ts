import type { AddressLease } from '../../api/address-lease.js';
import type { WatchSpec } from '../../kube/informers.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { type LeaseRecord, readLease } from '../core/lease.js';

/**
 * The leases, without indexes: the book of leases has its own, which know what we wrote ourselves. Not optional: as long as they are
 * not served, nothing is known of what is leased.
 */
export const ADDRESS_LEASE_WATCH: WatchSpec<AddressLease, LeaseRecord> = {
  resource: ADDRESS_LEASES,
  shrink: readLease,
};
