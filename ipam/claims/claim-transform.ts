import { type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { type Condition, type ObjectMeta, type OwnerReference, controllerOf } from '../../api/meta.js';
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
import { pickKeys } from '../../cluster/transforms.js';
import type { WatchSpec } from '../../kube/informers.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { BY_WORKLOAD, CLAIM_INDEXES } from '../../cluster/watch-specs.js';
import { NETWORK_INDEXES } from '../../addressing/directory/affected.js';

/** Transforms claims before they are cached: fields that are not named here are dropped. */

/**
 * Keeps the whole status, because its conditions are written back as one list. Objects are built by literals and assignments: one that is built from many spreads
 * is four times as big.
 */
export function transformServedClaim(claim: IPAMClaim): IPAMClaim {
  const { metadata, spec, status } = claim;
  const small: IPAMClaim = {
    metadata: transformMetadata(claim, metadata),
    spec: { network: intern(spec.network), interface: intern(spec.interface) },
  };
  if (status !== undefined) small.status = transformStatus(status);
  return small;
}

function transformMetadata(claim: IPAMClaim, metadata: ObjectMeta): ObjectMeta {
  const { name, namespace = '', uid = '', resourceVersion = '', creationTimestamp = '' } = metadata;
  const { generation, deletionTimestamp } = metadata;
  const small: ObjectMeta = { name, namespace: intern(namespace), uid, resourceVersion, creationTimestamp };
  if (generation !== undefined) small.generation = generation;
  if (deletionTimestamp !== undefined) small.deletionTimestamp = deletionTimestamp;
  addOwner(claim, small);
  const annotations = transformAnnotations(claim);
  if (annotations !== undefined) small.annotations = annotations;
  return small;
}

/** Keeps the owner once: in the reference, else in the annotations, else in label and finalizer. */
function addOwner(claim: IPAMClaim, small: ObjectMeta): void {
  const controller = controllerOf(claim);
  if (controller !== undefined) small.ownerReferences = [transformReference(controller)];
  if (claimOwnerOf(claim) !== undefined) return;
  const labels = pickKeys(claim.metadata.labels, [CLAIM_VM_LABEL]);
  if (labels !== undefined) small.labels = labels;
  if (claim.metadata.finalizers?.includes(CLAIM_FINALIZER) === true) small.finalizers = [CLAIM_FINALIZER];
}

function transformAnnotations(claim: IPAMClaim): Record<string, string> | undefined {
  const remembered = controllerOf(claim) === undefined ? [CLAIM_OWNER_NAME, CLAIM_OWNER_UID] : [];
  const keys = [CLAIM_NAD, CLAIM_REQUESTED_ADDRESSES, CLAIM_REQUEST_ORIGIN, CLAIM_MAC, ...remembered];
  const annotations = pickKeys(claim.metadata.annotations, keys);
  const nad = annotations?.[CLAIM_NAD];
  if (annotations !== undefined && nad !== undefined) annotations[CLAIM_NAD] = intern(nad);
  return annotations;
}

function transformReference({ apiVersion, kind, name, uid }: OwnerReference): OwnerReference {
  return { apiVersion: intern(apiVersion), kind: intern(kind), name, uid, controller: true };
}

function transformStatus(status: NonNullable<IPAMClaim['status']>): NonNullable<IPAMClaim['status']> {
  const { conditions } = status;
  return conditions === undefined ? status : { ...status, conditions: conditions.map(transformCondition) };
}

function transformCondition(condition: Condition): Condition {
  const { type, reason, message } = condition;
  return { ...condition, type: intern(type), reason: intern(reason), message: intern(message) };
}

/** Maximum number of shared texts: further ones are rarely equal. */
const MAX_INTERNED = 4096;
/** Longer texts are not shared, because shared texts stay in memory as long as the process. */
const MAX_LENGTH = 256;

const known = new Map<string, string>();

/** Returns an equal string that is shared, because a hundred thousand objects would each have their own copy. */
export function intern(text: string): string {
  if (text.length > MAX_LENGTH) return text;
  const found = known.get(text);
  if (found !== undefined) return found;
  if (known.size < MAX_INTERNED) known.set(text, text);
  return text;
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
