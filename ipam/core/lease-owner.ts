import type { LeaseOwner } from '../../api/address-lease.js';
import { type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { IPAM_CLAIM_KIND } from '../../api/names.js';

/** What the CRD of leases admits; what a lease is made of may have been written by others. */
export const MAX_INTERFACE = 15;
const MAX_UID = 128;

/** The claim, as leases name it. */
export function leaseOwnerOf(claim: IPAMClaim): LeaseOwner {
  const { namespace = '', name, uid = '' } = claim.metadata;
  const workloadUID = claimOwnerOf(claim)?.uid;
  const isUid = workloadUID !== undefined && workloadUID !== '' && workloadUID.length <= MAX_UID;
  return { kind: IPAM_CLAIM_KIND, namespace, name, uid, ...(isUid && { workloadUID }) };
}
