import type { KubeObject } from './meta.js';
import { controllerOf } from './meta.js';
import { isKubeVirtGroup } from './kubevirt.js';
import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE, VIRTUAL_MACHINE_INSTANCE_KIND } from './names.js';

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

/** The VMI that controls a pod, by its ownerReference; labels prove nothing. */
export function controllingVmi(pod: Pod): { name: string; uid: string } | undefined {
  const controller = controllerOf(pod);
  if (controller?.kind !== VIRTUAL_MACHINE_INSTANCE_KIND || !isKubeVirtGroup(controller.apiVersion)) return undefined;
  return { name: controller.name, uid: controller.uid };
}
