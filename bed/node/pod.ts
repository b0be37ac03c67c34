import type { Pod } from '../../api/pod.js';
import type { Resource } from '../../kube/resource.js';
import { PODS } from '../../kube/resources.js';

/** The fields of a pod that the kubelet reads and writes. */
export interface KubeletPod extends Pod {
  spec?: {
    nodeName?: string;
    containers?: Container[];
    initContainers?: Container[];
    readinessGates?: { conditionType: string }[];
    volumes?: { name: string; secret?: { secretName?: string; optional?: boolean } }[];
  };
  status?: PodStatus;
}

export interface Container {
  name: string;
  image?: string;
  /** `Always` makes an init container a sidecar. */
  restartPolicy?: string;
}

export interface PodCondition {
  type: string;
  status: string;
  reason?: string;
  lastTransitionTime?: string;
}

export interface ContainerStatus {
  name: string;
  image?: string;
  imageID?: string;
  containerID?: string;
  restartCount?: number;
  state?: { terminated?: { exitCode: number } };
}

export interface PodStatus {
  phase?: string;
  startTime?: string;
  hostIP?: string;
  podIP?: string;
  /** Replaces the whole list, because a strategic merge patch would add to it. */
  podIPs?: ({ ip: string } | { $patch: 'replace' })[];
  conditions?: PodCondition[];
  containerStatuses?: ContainerStatus[];
  initContainerStatuses?: object[];
}

export const KUBELET_PODS = PODS as Resource<KubeletPod>;

/** The full name of a launcher's VM, which labels may truncate. For other pods the pod's name. */
export function workloadName(pod: KubeletPod): string {
  return pod.metadata.annotations?.['kubevirt.io/domain'] ?? pod.metadata.name;
}

export function uidOf(pod: KubeletPod): string {
  return pod.metadata.uid ?? '';
}
