import { type KubeObject, controllerOf } from './meta.js';
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

/** True for a pod whose containers have terminated and will not restart: it uses no network. */
export function isTerminal(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

/** A kubelet writes 32 hex digits, or the UID in the manifest. Other users may write anything. */
const MAX_STATIC_UID = 64;

/**
 * Returns the UID of the static pod of a mirror pod. The kubelet, the runtime and CNI use only this UID, and it stays the same when the mirror pod
 * is created again. The node is the controller of its mirror pods, so a launcher is never one. The annotation alone proves nothing, because
 * every user who may create pods can write it.
 */
export function staticPodUidOf(pod: Pod): string | undefined {
  const uid = pod.metadata.annotations?.[MIRROR_POD_ANNOTATION];
  if (!uid || uid.length > MAX_STATIC_UID) return undefined;
  const controller = controllerOf(pod);
  const isOfNode = controller?.apiVersion === 'v1' && controller.kind === 'Node';
  return isOfNode && controller.name === pod.spec?.nodeName ? uid : undefined;
}

/** True if a lease whose owner has this UID, and the pod's name and namespace, belongs to the pod. */
export function hasUid(pod: Pod, uid: string): boolean {
  return pod.metadata.uid === uid || staticPodUidOf(pod) === uid;
}

/** Returns the VMI that controls a pod according to its ownerReferences; labels prove nothing. */
export function controllingVmi(pod: Pod): { name: string; uid: string } | undefined {
  const controller = controllerOf(pod);
  if (controller?.kind !== VIRTUAL_MACHINE_INSTANCE_KIND || !isKubeVirtGroup(controller.apiVersion)) return undefined;
  return { name: controller.name, uid: controller.uid };
}
