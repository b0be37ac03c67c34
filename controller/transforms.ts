import {
  DEFAULT_NETWORK_ANNOTATION,
  NETWORKS_ANNOTATION,
  NETWORK_STATUS_ANNOTATION,
  PRIMARY_CLAIM_ANNOTATION,
} from '../api/names.js';
import type { Pod } from '../api/pod.js';
import { identityMetadataOf, pickKeys } from '../cluster/transforms.js';

const ANNOTATIONS = [
  NETWORKS_ANNOTATION,
  DEFAULT_NETWORK_ANNOTATION,
  NETWORK_STATUS_ANNOTATION,
  PRIMARY_CLAIM_ANNOTATION,
];

/** Keeps the fields of a launcher that the controller reads. */
export function transformLauncher({ metadata, status }: Pod): Pod {
  const { ownerReferences } = metadata;
  const annotations = pickKeys(metadata.annotations, ANNOTATIONS);
  return {
    metadata: {
      ...identityMetadataOf(metadata),
      ...(ownerReferences && { ownerReferences }),
      ...(annotations && { annotations }),
    },
    ...(status?.phase !== undefined && { status: { phase: status.phase } }),
  };
}
