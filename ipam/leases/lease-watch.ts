import type { AddressLease } from '../../api/address-lease.js';
import type { WatchSpec } from '../../kube/informers.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';

/**
 * Watches leases without indexes: the lease book has its own, which include the process's own writes. Not optional: without leases
 * the process cannot know what is leased.
 */
export const ADDRESS_LEASE_WATCH: WatchSpec<AddressLease, LeaseRecord> = {
  resource: ADDRESS_LEASES,
  transform: readLease,
};
