import { CLAIM_COUNT } from '../api/ipam-claim.js';
import type { KubeObject } from '../api/meta.js';
import {
  DEFAULT_NETWORK_ANNOTATION,
  NETWORKS_ANNOTATION,
  NETWORK_STATUS_ANNOTATION,
  PRIMARY_CLAIM_ANNOTATION,
} from '../api/names.js';
import type { Pod } from '../api/pod.js';
import type { ResourceQuota } from '../kube/resources.js';
import { identityMetadataOf, pickKeys } from '../cluster/transforms.js';

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
