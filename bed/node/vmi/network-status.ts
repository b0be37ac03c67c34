import { createHash } from 'node:crypto';
import { DEFAULT_NETWORK_ANNOTATION, NETWORK_STATUS_ANNOTATION, NETWORKS_ANNOTATION } from '../../../api/names.js';
import { parseMac } from '../../../api/mac-address.js';
import { interfaceNameOf, parseNetworkSelections } from '../../../api/networks/network-selection.js';
import { generateMac } from './guest-interfaces.js';
import type { KubeletPod } from '../pod.js';

/** One entry of network-status (multi-net-spec §5.3). */
export interface Attachment {
  name: string;
  interface: string;
  ips?: string[];
  mac: string;
  default?: boolean;
  dns: object;
}

/**
 * Returns the network-status that Multus would write for a pod without real networks: the pod network first, then one entry for each
 * element of the networks annotation. See `CreateNetworkStatus` and `SetNetworkStatus` of network-attachment-definition-client v1.7.6
 * (pkg/utils/net-attach-def.go): addresses have no prefix length, and empty fields are absent.
 * @throws {NetworkSelectionError} if Multus would reject the annotation
 */
export function networkStatus(pod: KubeletPod): string {
  const entries = [defaultAttachment(pod), ...secondaryAttachments(pod)];
  return `[${entries.map((entry) => JSON.stringify(entry, null, 4)).join(',')}]`;
}

/** Returns the attachments in a pod's network-status. */
export function reportedAttachments(pod: KubeletPod): Attachment[] {
  return JSON.parse(pod.metadata.annotations?.[NETWORK_STATUS_ANNOTATION] ?? '[]') as Attachment[];
}

/** Whether the interfaces of network-status differ from those of the networks annotation. */
export function isNetworkStatusStale(pod: KubeletPod): boolean {
  const names = (attachments: Attachment[]) => attachments.map((attachment) => attachment.interface).join();
  return names(reportedAttachments(pod)) !== names(JSON.parse(networkStatus(pod)) as Attachment[]);
}

/** Derives an address of the pod network from the pod. Nothing listens on it. */
export function podAddress(pod: KubeletPod): string {
  const digest = createHash('sha256')
    .update(pod.metadata.uid ?? '')
    .digest();
  return `10.244.${digest[0] ?? 0}.${digest[1] || 1}`;
}

function defaultAttachment(pod: KubeletPod): Attachment {
  const name = pod.metadata.annotations?.[DEFAULT_NETWORK_ANNOTATION] ?? 'cluster-net';
  const mac = generateMac(pod.metadata.uid ?? '');
  return { name, interface: 'eth0', ips: [podAddress(pod)], mac, default: true, dns: {} };
}

function secondaryAttachments(pod: KubeletPod): Attachment[] {
  const annotation = pod.metadata.annotations?.[NETWORKS_ANNOTATION] ?? '';
  const selections = parseNetworkSelections(annotation, pod.metadata.namespace ?? '');
  const requests = requestsOf(annotation);
  return selections.map((selection, index) => {
    const interfaceName = interfaceNameOf(selection);
    const { mac, ips = [] } = requests[index] ?? {};
    const attachment = {
      name: `${selection.nad.namespace}/${selection.nad.name}`,
      interface: interfaceName,
      mac: parseMac(mac ?? '') ?? generateMac(`${pod.metadata.uid ?? ''}${interfaceName}`),
      dns: {},
    };
    return ips.length > 0 ? { ...attachment, ips: ips.map((ip) => ip.replace(/\/.*/, '')) } : attachment;
  });
}

/** Addresses that the elements request. The comma-separated form cannot request any. */
function requestsOf(annotation: string): { mac?: string; ips?: string[] }[] {
  if (!annotation.trimStart().startsWith('[')) return [];
  return JSON.parse(annotation) as { mac?: string; ips?: string[] }[];
}
