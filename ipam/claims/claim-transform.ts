import { type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { omitUndefined } from '../../api/json.js';
import { type Condition, type ObjectMeta, controllerOf } from '../../api/meta.js';
import {
  CLAIM_FINALIZER,
  CLAIM_MAC,
  CLAIM_NAD,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_REQUEST_ORIGIN,
  CLAIM_VM_LABEL,
} from '../../api/names.js';
import { appliedRequestOf, formerRequest } from '../../cluster/applied-claim.js';
import { intern, share } from '../../cluster/share.js';
import { pickKeys, transformReference } from '../../cluster/metadata.js';
import type { WatchSpec } from '../../kube/informers/informers.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { BY_WORKLOAD, CLAIM_INDEXES } from '../../cluster/watch-specs.js';
import { NETWORK_INDEXES } from '../../addressing/directory/affected.js';

/** Transforms claims before they are cached: fields that are not named here are dropped. */

/**
 * Keeps the whole status, because its conditions are written back as one list.
 */
export function transformServedClaim(claim: IPAMClaim): IPAMClaim {
  const { spec, status } = claim;
  return omitUndefined({
    metadata: transformMetadata(claim),
    spec: share({ network: spec.network, interface: spec.interface }),
    status: status && transformStatus(status),
  });
}

function transformMetadata(claim: IPAMClaim): ObjectMeta {
  const { name, namespace = '', uid = '', resourceVersion = '', creationTimestamp = '' } = claim.metadata;
  const { generation, deletionTimestamp, labels, finalizers } = claim.metadata;
  // the owner once: in the reference, else in the annotations, else in label and finalizer
  const controller = controllerOf(claim);
  const small: ObjectMeta = omitUndefined({
    name,
    namespace: intern(namespace),
    uid,
    resourceVersion,
    creationTimestamp: intern(creationTimestamp),
    generation,
    ownerReferences: controller && [transformReference(controller)],
    annotations: transformAnnotations(claim),
  });
  if (deletionTimestamp !== undefined) small.deletionTimestamp = deletionTimestamp;
  if (claimOwnerOf(claim) !== undefined) return small;
  const label = pickKeys(labels, [CLAIM_VM_LABEL]);
  if (label !== undefined) small.labels = label;
  if (finalizers?.includes(CLAIM_FINALIZER) === true) small.finalizers = [CLAIM_FINALIZER];
  return small;
}

function transformAnnotations(claim: IPAMClaim): Record<string, string> | undefined {
  const remembered = controllerOf(claim) === undefined ? [CLAIM_OWNER_NAME, CLAIM_OWNER_UID] : [];
  const keys = [CLAIM_NAD, CLAIM_REQUESTED_ADDRESSES, CLAIM_REQUEST_ORIGIN, CLAIM_MAC, ...remembered];
  const kept = pickKeys(claim.metadata.annotations, keys);
  const applied = requestOfCopy(claim);
  return share(kept && applied !== undefined ? { ...kept, ...formerRequest(applied) } : kept);
}

/** The request that the controller writes into a claim that `kubectl apply` has restored. Until then, the claim would get other addresses. */
function requestOfCopy(claim: IPAMClaim): string | undefined {
  const { [CLAIM_OWNER_UID]: ownerUid, [CLAIM_REQUESTED_ADDRESSES]: request } = claim.metadata.annotations ?? {};
  return ownerUid === undefined || request !== undefined ? undefined : appliedRequestOf(claim, ownerUid);
}

function transformStatus(status: NonNullable<IPAMClaim['status']>): NonNullable<IPAMClaim['status']> {
  const { conditions } = status;
  // many claims got an address of the same pool in the same second
  return conditions === undefined ? status : { ...status, conditions: share(conditions.map(transformCondition)) };
}

function transformCondition(condition: Condition): Condition {
  const { type, status, reason, message, lastTransitionTime, observedGeneration } = condition;
  const small: Condition = {
    type: intern(type),
    status,
    reason: intern(reason),
    message: intern(message),
    lastTransitionTime: intern(lastTransitionTime),
  };
  if (observedGeneration !== undefined) small.observedGeneration = observedGeneration;
  return small;
}

/** Only indexes that are queried: an index with a hundred thousand values costs as much memory as the claims. */
export const SERVED_CLAIM_INDEXES = { [BY_WORKLOAD]: CLAIM_INDEXES[BY_WORKLOAD], ...NETWORK_INDEXES };

/** Watches claims with their whole status. Optional, because another project owns the CRD, which may be installed later. */
export const SERVED_CLAIM_WATCH: WatchSpec<IPAMClaim> = {
  resource: IPAM_CLAIMS,
  transform: transformServedClaim,
  indexes: SERVED_CLAIM_INDEXES,
  optional: true,
};
