import type { KubeObject } from './meta.js';
import { controllerOf } from './meta.js';
import { isKubeVirtGroup } from './kubevirt.js';
import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE, MIRROR_POD_ANNOTATION, VIRTUAL_MACHINE_INSTANCE_KIND } from './names.js';

/** The fields of a pod that Holdfast reads. */
export interface Pod extends KubeObject {
  spec?: { nodeName?: string };
  status?: { phase?: string; podIP?: string; conditions?: PodCondition[] };
}

/** v1.PodCondition. */
export interface PodCondition {
  type: string;
  status: string;
  /** RFC 3339. */
  lastTransitionTime?: string;
}

export function isLauncher(pod: Pod): boolean {
  return pod.metadata.labels?.[LAUNCHER_LABEL] === LAUNCHER_LABEL_VALUE;
}

/** A pod whose containers have ended for good: it holds no network any more. */
export function isTerminal(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

/** A kubelet writes 32 hex digits, or the UID that a manifest names. Others may write anything. */
const MAX_STATIC_UID = 64;

/**
 * Of a mirror pod, the UID of its static pod. The kubelet, the runtime and CNI know the static pod by this UID only, and it stays when the mirror
 * pod is created again. A kubelet makes the node the controller of its mirror pods, so that a launcher never is one. The value alone proves nothing:
 * anybody who may create pods can write it.
 */
export function staticPodUidOf(pod: Pod): string | undefined {
  const uid = pod.metadata.annotations?.[MIRROR_POD_ANNOTATION];
  if (!uid || uid.length > MAX_STATIC_UID) return undefined;
  const controller = controllerOf(pod);
  const isOfNode = controller?.apiVersion === 'v1' && controller.kind === 'Node';
  return isOfNode && controller.name === pod.spec?.nodeName ? uid : undefined;
}

/** Whether a lease of this owner's UID is the pod's, whose name and namespace are the owner's. */
export function hasUid(pod: Pod, uid: string): boolean {
  return pod.metadata.uid === uid || staticPodUidOf(pod) === uid;
}

/** The VMI that controls a pod, by its ownerReference; labels prove nothing. */
export function controllingVmi(pod: Pod): { name: string; uid: string } | undefined {
  const controller = controllerOf(pod);
  if (controller?.kind !== VIRTUAL_MACHINE_INSTANCE_KIND || !isKubeVirtGroup(controller.apiVersion)) return undefined;
  return { name: controller.name, uid: controller.uid };
}
