import {
  LAUNCHER_LABEL,
  LAUNCHER_LABEL_VALUE,
  MIRROR_POD_ANNOTATION,
  NETWORK_STATUS_ANNOTATION,
  VIRTUAL_MACHINE_INSTANCE_KIND,
  shortHash,
} from './names.js';
import { isKubeVirtGroup } from './kubevirt.js';
import { type KubeObject, controllerOf } from './meta.js';
import { MAX_ANNOTATION_LENGTH } from './networks/network-selection.js';

/** The label with the process of a pod, such as `agent`, on all objects that the manifests create. */
export const COMPONENT_LABEL = 'app.kubernetes.io/component';

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

/** Selects the launchers, like {@link isLauncher}. */
export const LAUNCHER_SELECTOR = `${LAUNCHER_LABEL}=${LAUNCHER_LABEL_VALUE}`;

export function isLauncher(pod: Pod): boolean {
  return pod.metadata.labels?.[LAUNCHER_LABEL] === LAUNCHER_LABEL_VALUE;
}

/** True for a pod whose containers have terminated and will not restart: it uses no network. */
export function isTerminal(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

/** Returns when a pod got its node, in milliseconds since the epoch; undefined if it has none. */
export function scheduledTime(pod: Pod): number | undefined {
  const bound = pod.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'True');
  // a pod that was created with a node name was never scheduled
  const text = bound?.lastTransitionTime ?? (pod.spec?.nodeName ? pod.metadata.creationTimestamp : undefined);
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : time;
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

/** Returns the UIDs that the owner of the pod's leases may have: its own, or that of its static pod. */
export function leaseUidsOf(pod: Pod): string[] {
  return [pod.metadata.uid, staticPodUidOf(pod)].flatMap((uid) => uid ?? []);
}

/** True if a lease whose owner has this UID, and the pod's name and namespace, belongs to the pod. */
export function hasUid(pod: Pod, uid: string): boolean {
  return leaseUidsOf(pod).includes(uid);
}

/** Returns the VMI that controls a pod according to its ownerReferences; labels prove nothing. */
export function controllingVmi(pod: Pod): { name: string; uid: string } | undefined {
  const controller = controllerOf(pod);
  if (controller?.kind !== VIRTUAL_MACHINE_INSTANCE_KIND || !isKubeVirtGroup(controller.apiVersion)) return undefined;
  return { name: controller.name, uid: controller.uid };
}

/** One attachment that Multus reports (multi-net-spec §5.3). */
export interface NetworkStatus {
  /** `namespace/name` of the NAD. */
  name: string;
  interface?: string;
}

/** Returns the attachments in a pod's status annotation; none if it cannot be read. */
export function networkStatuses(pod: Pod): NetworkStatus[] {
  return readNetworkStatuses(pod) ?? [];
}

/** Returns the attachments in a pod's status annotation; undefined if it cannot be read. */
export function readNetworkStatuses(pod: Pod): NetworkStatus[] | undefined {
  const value = pod.metadata.annotations?.[NETWORK_STATUS_ANNOTATION];
  if (value === undefined) return [];
  if (value.length > MAX_ANNOTATION_LENGTH) return undefined;
  let list: unknown;
  try {
    list = JSON.parse(value);
  } catch {
    return undefined;
  }
  if (!Array.isArray(list)) return undefined;
  return list.filter((entry): entry is NetworkStatus => {
    const { name, interface: attached } = (entry ?? {}) as Partial<Record<keyof NetworkStatus, unknown>>;
    return typeof name === 'string' && (attached === undefined || typeof attached === 'string');
  });
}

/** True for a network that a NAD defines. The cluster's default network has no namespace, and a pod has no claim on it. */
export function isOfNad({ name }: Pick<NetworkStatus, 'name'>): boolean {
  return name.includes('/');
}

/** Returns the addresses of an attachment, without prefix length; none if they cannot be read. */
export function reportedIPsOf(attachment: NetworkStatus): string[] {
  const { ips } = attachment as { ips?: unknown };
  return Array.isArray(ips) ? ips.filter((ip): ip is string => typeof ip === 'string') : [];
}

/**
 * Returns the name of a pod's interface for a VM's secondary network as KubeVirt generates it: `pod` and 11 hex digits.
 * It depends only on the network's name in the VM (kubevirt pkg/network/namescheme).
 */
export function podInterfaceName(vmNetwork: string): string {
  return `pod${shortHash(vmNetwork, 11)}`;
}

/**
 * Returns the interface name that KubeVirt used before it hashed names: `net1` for the first secondary network.
 * Pods of VMs that such a version started, and their migration targets, still have it.
 * @param position 1-based, among the VM's secondary networks in the order of its spec
 */
export function ordinalInterfaceName(position: number): string {
  return `net${String(position)}`;
}
