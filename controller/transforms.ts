import { DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION, NETWORK_STATUS_ANNOTATION } from '../api/names.js';
import type { Pod } from '../api/pod.js';
import { identityMetadataOf, pickKeys } from '../cluster/transforms.js';

/** Objects are made small before they are cached: what is not named here is dropped. */

const ANNOTATIONS = [NETWORKS_ANNOTATION, DEFAULT_NETWORK_ANNOTATION, NETWORK_STATUS_ANNOTATION];

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
