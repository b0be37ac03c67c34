import { CLAIM_COUNT } from '../api/ipam-claim.js';
import { omitUndefined } from '../api/json.js';
import type { KubeObject, ObjectMeta } from '../api/meta.js';
import {
  DEFAULT_NETWORK_ANNOTATION,
  NETWORKS_ANNOTATION,
  NETWORK_STATUS_ANNOTATION,
  PRIMARY_CLAIM_ANNOTATION,
} from '../api/names.js';
import { mayReferToClaims } from '../api/networks/network-selection.js';
import {
  type NetworkStatus,
  type Pod,
  controllingVmi,
  isOfNad,
  readNetworkStatuses,
  reportedIPsOf,
} from '../api/pod.js';
import { intern, share } from '../cluster/share.js';
import { pickKeys, transformReference } from '../cluster/metadata.js';
import { BY_WORKLOAD } from '../cluster/watch-specs.js';
import { claimReferencesOf } from './claims/plan/references.js';
import type { ResourceQuota } from '../kube/resources.js';

const ANNOTATIONS = [
  NETWORKS_ANNOTATION,
  DEFAULT_NETWORK_ANNOTATION,
  NETWORK_STATUS_ANNOTATION,
  PRIMARY_CLAIM_ANNOTATION,
];

/** Keeps the fields of a launcher that the controller reads. */
export function transformLauncher(pod: Pod): Pod {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = pod.metadata;
  const annotations = isIrrelevant(pod) ? undefined : pickKeys(pod.metadata.annotations, ANNOTATIONS);
  if (annotations?.[NETWORK_STATUS_ANNOTATION] !== undefined)
    annotations[NETWORK_STATUS_ANNOTATION] = transformStatuses(readNetworkStatuses(pod));
  const metadata: ObjectMeta = omitUndefined({
    name,
    namespace: namespace && intern(namespace),
    uid,
    resourceVersion,
    creationTimestamp: creationTimestamp && intern(creationTimestamp),
    ownerReferences: pod.metadata.ownerReferences?.map(transformReference),
    annotations,
  });
  if (deletionTimestamp !== undefined) metadata.deletionTimestamp = deletionTimestamp;
  return omitUndefined({
    metadata,
    spec: pod.spec?.nodeName === undefined ? undefined : share({ nodeName: pod.spec.nodeName }),
    status: pod.status?.phase === undefined ? undefined : share({ phase: pod.status.phase }),
  });
}

/** Any user may create pods without a VMI that look like launchers. Only a reference to a claim matters then. */
function isIrrelevant(pod: Pod): boolean {
  const isPrimary = pod.metadata.annotations?.[PRIMARY_CLAIM_ANNOTATION] !== undefined;
  return controllingVmi(pod) === undefined && !isPrimary && !mayReferToClaims(pod);
}

/** An empty text cannot be read either. */
function transformStatuses(statuses: NetworkStatus[] | undefined): string {
  return statuses === undefined ? '' : JSON.stringify(statuses.filter(isOfNad).map(transformStatus));
}

/** Of what Multus reports, a third is needed. */
function transformStatus(status: NetworkStatus): NetworkStatus & { readonly ips?: readonly string[] } {
  const ips = reportedIPsOf(status);
  return { ...omitUndefined({ name: status.name, interface: status.interface }), ...(ips.length > 0 && { ips }) };
}

/** A quota, and what it says about the number of claims: limit and use. */
export interface ClaimQuota extends KubeObject {
  claims: string;
}

/** Keeps nothing that pods and other objects change. */
export function transformQuota({ metadata: { name, namespace }, status }: ResourceQuota): ClaimQuota {
  const claims = `${status?.used?.[CLAIM_COUNT] ?? ''}/${status?.hard?.[CLAIM_COUNT] ?? ''}`;
  return { metadata: { name, ...(namespace !== undefined && { namespace }) }, claims };
}

/** Launchers without a VMI, by the claims to which they refer. */
export const BY_CLAIM = 'claim';

/** Indexes of the controller's own caches. */
export const LAUNCHER_INDEXES = {
  [BY_WORKLOAD]: (pod: Pod) => {
    const vmi = controllingVmi(pod);
    return vmi === undefined ? [] : namesIn(pod, [vmi.name]);
  },
  [BY_CLAIM]: (pod: Pod) =>
    controllingVmi(pod) === undefined ? namesIn(pod, [...new Set(claimReferencesOf(pod))]) : [],
};

function namesIn({ metadata: { namespace = '' } }: Pod, names: readonly string[]) {
  return names.map((name) => ({ namespace, name }));
}
