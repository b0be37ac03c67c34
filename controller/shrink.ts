import { NETWORKS_ANNOTATION, NETWORK_STATUS_ANNOTATION } from '../api/names.js';
import type { Pod } from '../api/pod.js';
import { identityOf, pick } from '../process/shrink.js';

/** Objects are made small before they are cached: what is not named here is dropped. */

export function shrinkLauncher({ metadata, status }: Pod): Pod {
  const { ownerReferences } = metadata;
  const annotations = pick(metadata.annotations, [NETWORKS_ANNOTATION, NETWORK_STATUS_ANNOTATION]);
  return {
    metadata: {
      ...identityOf(metadata),
      ...(ownerReferences && { ownerReferences }),
      ...(annotations && { annotations }),
    },
    ...(status?.phase !== undefined && { status: { phase: status.phase } }),
  };
}
