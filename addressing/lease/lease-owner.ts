import type { LeaseOwner } from '../../api/address-lease.js';
import { type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { IPAM_CLAIM_KIND } from '../../api/names.js';

/** Limits of the CRD. The values come from objects that others may have written. */
export const MAX_INTERFACE = 15;
const MAX_UID = 128;

/** Returns a claim as the owner of leases. */
export function leaseOwnerOf(claim: IPAMClaim): LeaseOwner {
  const { namespace = '', name, uid = '' } = claim.metadata;
  const workloadUID = claimOwnerOf(claim)?.uid;
  const isUid = workloadUID !== undefined && workloadUID !== '' && workloadUID.length <= MAX_UID;
  return { kind: IPAM_CLAIM_KIND, namespace, name, uid, ...(isUid && { workloadUID }) };
}
