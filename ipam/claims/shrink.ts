import { type IPAMClaim, ownerOf } from '../../api/ipam-claim.js';
import { type Condition, type ObjectMeta, type OwnerReference, controllerOf } from '../../api/meta.js';
import {
  CLAIM_FINALIZER,
  CLAIM_MAC,
  CLAIM_NAD,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_VM_LABEL,
} from '../../api/names.js';
import { pick } from '../../cluster/shrink.js';
import { interned } from './interned.js';

/** Objects are made small before they are cached: what is not named here is dropped. */

/**
 * The status is kept whole: its conditions are written back in one list. Objects are made by literals and assignments: one made
 * of many spreads is four times as big.
 */
export function shrinkClaim(claim: IPAMClaim): IPAMClaim {
  const { metadata, spec, status } = claim;
  const small: IPAMClaim = {
    metadata: shrinkMetadata(claim, metadata),
    spec: { network: interned(spec.network), interface: interned(spec.interface) },
  };
  if (status !== undefined) small.status = shrinkStatus(status);
  return small;
}

function shrinkMetadata(claim: IPAMClaim, metadata: ObjectMeta): ObjectMeta {
  const { name, namespace = '', uid = '', resourceVersion = '', creationTimestamp = '' } = metadata;
  const { generation, deletionTimestamp } = metadata;
  const small: ObjectMeta = { name, namespace: interned(namespace), uid, resourceVersion, creationTimestamp };
  if (generation !== undefined) small.generation = generation;
  if (deletionTimestamp !== undefined) small.deletionTimestamp = deletionTimestamp;
  addOwner(claim, small);
  const annotations = shrinkAnnotations(claim);
  if (annotations !== undefined) small.annotations = annotations;
  return small;
}

/** Whose it is stands there once: in the reference, else in the annotations, else, for want of both, in label and finalizer. */
function addOwner(claim: IPAMClaim, small: ObjectMeta): void {
  const controller = controllerOf(claim);
  if (controller !== undefined) small.ownerReferences = [shrinkReference(controller)];
  if (ownerOf(claim) !== undefined) return;
  const labels = pick(claim.metadata.labels, [CLAIM_VM_LABEL]);
  if (labels !== undefined) small.labels = labels;
  if (claim.metadata.finalizers?.includes(CLAIM_FINALIZER) === true) small.finalizers = [CLAIM_FINALIZER];
}

function shrinkAnnotations(claim: IPAMClaim): Record<string, string> | undefined {
  const remembered = controllerOf(claim) === undefined ? [CLAIM_OWNER_NAME, CLAIM_OWNER_UID] : [];
  const annotations = pick(claim.metadata.annotations, [
    CLAIM_NAD,
    CLAIM_REQUESTED_ADDRESSES,
    CLAIM_MAC,
    ...remembered,
  ]);
  const nad = annotations?.[CLAIM_NAD];
  if (annotations !== undefined && nad !== undefined) annotations[CLAIM_NAD] = interned(nad);
  return annotations;
}

function shrinkReference({ apiVersion, kind, name, uid }: OwnerReference): OwnerReference {
  return { apiVersion: interned(apiVersion), kind: interned(kind), name, uid, controller: true };
}

function shrinkStatus(status: NonNullable<IPAMClaim['status']>): NonNullable<IPAMClaim['status']> {
  const { conditions } = status;
  return conditions === undefined ? status : { ...status, conditions: conditions.map(shrinkCondition) };
}

function shrinkCondition(condition: Condition): Condition {
  const { type, reason, message } = condition;
  return { ...condition, type: interned(type), reason: interned(reason), message: interned(message) };
}
