import type { ObjectMeta, OwnerReference } from '../../../api/meta.js';
import { LAUNCHER_LABEL, MIGRATION_LABEL, MIRROR_POD_ANNOTATION, NETWORKS_ANNOTATION } from '../../../api/names.js';
import type { Pod } from '../../../api/pod.js';
import { pick } from '../../../process/shrink.js';

/** A pod of this node, as far as an agent remembers it. */
export interface NodePod extends Pod {
  metadata: Pick<ObjectMeta, 'name' | 'creationTimestamp' | 'deletionTimestamp' | 'labels' | 'annotations'> & {
    namespace: string;
    uid: string;
    ownerReferences?: OwnerReference[];
  };
}

const LABELS = [LAUNCHER_LABEL, 'kubevirt.io/created-by', MIGRATION_LABEL];
const ANNOTATIONS = [NETWORKS_ANNOTATION, MIRROR_POD_ANNOTATION];

export function shrinkNodePod({ metadata, spec, status }: Pod): NodePod {
  const { name, namespace = '', uid = '', creationTimestamp, deletionTimestamp, ownerReferences } = metadata;
  const labels = pick(metadata.labels, LABELS);
  const annotations = pick(metadata.annotations, ANNOTATIONS);
  return {
    metadata: {
      name,
      namespace,
      uid,
      ...(creationTimestamp !== undefined && { creationTimestamp }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ...(ownerReferences && { ownerReferences }),
    },
    ...(spec?.nodeName !== undefined && { spec: { nodeName: spec.nodeName } }),
    ...(status?.phase !== undefined && { status: { phase: status.phase } }),
  };
}

/** A runtime knows a static pod by another UID than the API server. */
export function isKnownAs({ metadata }: NodePod, uid: string): boolean {
  return metadata.uid === uid || metadata.annotations?.[MIRROR_POD_ANNOTATION] === uid;
}
