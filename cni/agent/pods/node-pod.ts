import type { ObjectMeta, OwnerReference } from '../../../api/meta.js';
import {
  DEFAULT_NETWORK_ANNOTATION,
  LAUNCHER_CREATOR,
  LAUNCHER_LABEL,
  MIGRATION_LABEL,
  NETWORKS_ANNOTATION,
} from '../../../api/names.js';
import { type Pod, staticPodUidOf } from '../../../api/pod.js';
import { pickKeys } from '../../../cluster/transforms.js';

/** A pod of this node, as far as an agent remembers it. */
export interface NodePod extends Pod {
  metadata: Pick<ObjectMeta, 'name' | 'creationTimestamp' | 'deletionTimestamp' | 'labels' | 'annotations'> & {
    namespace: string;
    uid: string;
    ownerReferences?: OwnerReference[];
  };
  /** Of a mirror pod: {@link staticPodUidOf}. */
  staticUid?: string;
}

const LABELS = [LAUNCHER_LABEL, 'kubevirt.io/created-by', MIGRATION_LABEL];
const ANNOTATIONS = [LAUNCHER_CREATOR, NETWORKS_ANNOTATION, DEFAULT_NETWORK_ANNOTATION];

export function transformNodePod(pod: Pod): NodePod {
  const { metadata, spec, status } = pod;
  const staticUid = staticPodUidOf(pod);
  return {
    metadata: transformPodMetadata(metadata),
    ...(spec?.nodeName !== undefined && { spec: { nodeName: spec.nodeName } }),
    ...(status?.phase !== undefined && { status: { phase: status.phase } }),
    ...(staticUid !== undefined && { staticUid }),
  };
}

function transformPodMetadata(metadata: ObjectMeta): NodePod['metadata'] {
  const { name, namespace = '', uid = '', creationTimestamp, deletionTimestamp, ownerReferences } = metadata;
  const labels = pickKeys(metadata.labels, LABELS);
  const annotations = pickKeys(metadata.annotations, ANNOTATIONS);
  return {
    name,
    namespace,
    uid,
    ...(creationTimestamp !== undefined && { creationTimestamp }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(ownerReferences && { ownerReferences }),
  };
}

/** A runtime knows a static pod by another UID than the API server. */
export function isKnownAs({ metadata, staticUid }: NodePod, uid: string): boolean {
  return metadata.uid === uid || staticUid === uid;
}

/** The UID by which the runtime knows the pod, as {@link NodePods.find} has found it: the owner of its leases. */
export function runtimeUidOf({ metadata, staticUid }: NodePod): string {
  return staticUid ?? metadata.uid;
}

/** The pod for which the runtime says this UID. Only the runtime can say that it is a static pod: tenants write annotations, too. */
export function withConfirmedStaticUid(pod: NodePod, uid: string | undefined): NodePod {
  if (pod.staticUid === undefined || pod.staticUid === uid) return pod;
  const { staticUid: _unconfirmed, ...rest } = pod;
  return rest;
}
