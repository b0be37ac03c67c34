import { CLAIM_COUNT } from '../api/ipam-claim.js';
import { type KubeObject, joinKey } from '../api/meta.js';
import {
  DEFAULT_NETWORK_ANNOTATION,
  NETWORKS_ANNOTATION,
  NETWORK_STATUS_ANNOTATION,
  PRIMARY_CLAIM_ANNOTATION,
} from '../api/names.js';
import { type Pod, controllingVmi } from '../api/pod.js';
import { identityMetadataOf, pickKeys } from '../cluster/transforms.js';
import { BY_WORKLOAD } from '../cluster/watch-specs.js';
import type { ResourceQuota } from '../kube/resources.js';

const ANNOTATIONS = [
  NETWORKS_ANNOTATION,
  DEFAULT_NETWORK_ANNOTATION,
  NETWORK_STATUS_ANNOTATION,
  PRIMARY_CLAIM_ANNOTATION,
];

/** Keeps the fields of a launcher that the controller reads. */
export function transformLauncher({ metadata, spec, status }: Pod): Pod {
  const { ownerReferences } = metadata;
  const annotations = pickKeys(metadata.annotations, ANNOTATIONS);
  return {
    metadata: {
      ...identityMetadataOf(metadata),
      ...(ownerReferences && { ownerReferences }),
      ...(annotations && { annotations }),
    },
    ...(spec?.nodeName !== undefined && { spec: { nodeName: spec.nodeName } }),
    ...(status?.phase !== undefined && { status: { phase: status.phase } }),
  };
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

/** Indexes of the controller's own caches. */
export const LAUNCHER_INDEXES = { [BY_WORKLOAD]: (pod: Pod) => [workloadOfLauncher(pod)] };

/** Returns the key of the VMI, of any UID, that controls the pod, or the namespace's orphan key if no VMI does. */
export function workloadOfLauncher(pod: Pod): string {
  const { namespace = '' } = pod.metadata;
  const vmi = controllingVmi(pod);
  return vmi === undefined ? orphanKey(namespace) : joinKey(namespace, vmi.name);
}

/** No workload has this key. */
export function orphanKey(namespace: string): string {
  return `${namespace}/`;
}
