import { nadNamespaceOf } from '../api/address-pool.js';
import { type IPAMClaim, claimOwnerOf, isWorkloadClaim } from '../api/ipam-claim.js';
import { type ObjectMeta, controllerOf } from '../api/meta.js';
import {
  ADDRESS_POOL_KIND,
  IPAM_API_VERSION,
  IPAM_CLAIM_API_VERSION,
  IPAM_CLAIM_KIND,
  KUBEVIRT_API_VERSION,
  VIRTUAL_MACHINE_KIND,
} from '../api/names.js';
import type { EventSubject } from '../kube/events.js';

/** Returns the claim and its owner: the VM, or the VMI without a VM. */
export function claimEventSubjects(claim: IPAMClaim): EventSubject[] {
  const { namespace = '' } = claim.metadata;
  const itself = claimEventSubject(claim);
  const owner = claimOwnerOf(claim);
  if (owner === undefined || !isWorkloadClaim(claim)) return [itself];
  const { apiVersion = KUBEVIRT_API_VERSION, kind = VIRTUAL_MACHINE_KIND } = controllerOf(claim) ?? {};
  return [itself, { apiVersion, kind, metadata: { namespace, name: owner.name, uid: owner.uid } }];
}

export function claimEventSubject({ metadata: { namespace = '', name, uid = '' } }: IPAMClaim): EventSubject {
  return { apiVersion: IPAM_CLAIM_API_VERSION, kind: IPAM_CLAIM_KIND, metadata: { namespace, name, uid } };
}

/** Events about a derived pool take the share of its NADs' namespace, so that they leave room for those of administrators' pools. */
export function poolEventSubject(pool: Pick<ObjectMeta, 'name' | 'uid' | 'annotations'>): EventSubject {
  const { name, uid } = pool;
  const tenant = nadNamespaceOf({ metadata: pool });
  return {
    ...{ apiVersion: IPAM_API_VERSION, kind: ADDRESS_POOL_KIND, metadata: { name, ...(uid && { uid }) } },
    ...(tenant !== undefined && { tenant }),
  };
}
