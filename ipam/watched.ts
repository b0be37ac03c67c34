import type { AddressLease } from '../api/address-lease.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { ADDRESS_LEASES, IPAM_CLAIMS } from '../kube/resources.js';
import type { Watched } from '../process/informers.js';
import { type LeaseRecord, readLease } from './core/lease.js';
import { SERVED_CLAIM_INDEXES } from './indexes.js';
import { shrinkClaim } from './shrink.js';

/** What only the embedded IPAM follows. Leases are not optional: as long as they are not served, nothing is known of what is leased. */

/** Without indexes: the book of leases has its own, which know what we wrote ourselves. */
export const ADDRESS_LEASE_WATCH: Watched<AddressLease, LeaseRecord> = { resource: ADDRESS_LEASES, shrink: readLease };
/** With their whole status. Optional as elsewhere: another's CRD, which may come later. */
export const SERVED_CLAIMS: Watched<IPAMClaim> = {
  resource: IPAM_CLAIMS,
  shrink: shrinkClaim,
  indexes: SERVED_CLAIM_INDEXES,
  optional: true,
};
