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

/** A pod of this node, with the fields that the agent keeps. */
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

/** Whether the runtime knows the pod by this UID. For a static pod it differs from that of the API server. */
export function isKnownAs({ metadata, staticUid }: NodePod, uid: string): boolean {
  return metadata.uid === uid || staticUid === uid;
}

/** Returns the UID by which the runtime knows the pod. It owns the pod's leases. */
export function runtimeUidOf({ metadata, staticUid }: NodePod): string {
  return staticUid ?? metadata.uid;
}

/** Drops an unconfirmed static UID. Only the runtime proves that a pod is static, because tenants can write the annotation. */
export function withConfirmedStaticUid(pod: NodePod, uid: string | undefined): NodePod {
  if (pod.staticUid === undefined || pod.staticUid === uid) return pod;
  const { staticUid: _unconfirmed, ...rest } = pod;
  return rest;
}
