import { joinKey } from '../../api/meta.js';
import { DEFAULT_NETWORK_ANNOTATION, PRIMARY_CLAIM_ANNOTATION } from '../../api/names.js';
import { networkSelectionsOf } from '../../api/networks/network-selection.js';
import type { Pod } from '../../api/pod.js';
import type { Patch } from '../../kube/client.js';

export interface OvnNetwork {
  readonly nad: NadRef;
  /** `name` in the NAD's config. */
  readonly network: string;
  readonly subnets: readonly string[];
  /** The pods of the namespace have it in place of the pod network. */
  readonly isPrimary?: boolean;
}

interface NadRef {
  readonly namespace: string;
  readonly name: string;
}

/** An interface of a pod on a network. */
export interface Attachment {
  /** The claim to which it refers. */
  readonly reference: string | undefined;
  /** The addresses that it requests, which only primary networks allow. */
  readonly requested?: string[];
}

/** The addresses of a pod on all networks, by NAD. A second interface on one NAD has the suffix `/1`. */
const POD_NETWORKS = 'k8s.ovn.org/pod-networks';

/** Returns the interfaces of a pod on a network, in the order of its annotation. */
export function attachmentsOf(pod: Pod, { nad, isPrimary }: OvnNetwork): Attachment[] {
  if (isPrimary === true) return [primaryAttachment(pod)];
  return networkSelectionsOf(pod)
    .filter((selection) => selection.nad.namespace === nad.namespace && selection.nad.name === nad.name)
    .map(({ claimReference }) => ({ reference: claimReference }));
}

/** The reference in the default network has precedence over the older annotation. */
function primaryAttachment({ metadata: { annotations = {} } }: Pod): Attachment {
  const text = annotations[DEFAULT_NETWORK_ANNOTATION] ?? '[]';
  const [selection] = JSON.parse(text) as { ips?: string[]; 'ipam-claim-reference'?: string }[];
  const reference = selection?.['ipam-claim-reference'] ?? annotations[PRIMARY_CLAIM_ANNOTATION];
  return { reference, ...(selection?.ips && { requested: selection.ips }) };
}

/** Returns the addresses in a pod's annotation, one list for each of its interfaces on the NAD. */
export function annotatedAddresses(pod: Pod, nad: NadRef): string[][] {
  const networks = readAnnotation(pod);
  const name = joinKey(nad.namespace, nad.name);
  return Object.keys(networks).flatMap((key) =>
    key === name || key.startsWith(`${name}/`) ? [networks[key]?.ip_addresses ?? []] : [],
  );
}

/** Writes the addresses of a pod on one network and keeps those on other networks. */
export function annotationPatch(pod: Pod, { nad, isPrimary }: OvnNetwork, addresses: readonly string[][]): Patch {
  const networks = { ...readAnnotation(pod) };
  addresses.forEach((ips, index) => {
    const key = joinKey(nad.namespace, nad.name) + (index === 0 ? '' : `/${String(index)}`);
    networks[key] = { ip_addresses: ips, role: isPrimary === true ? 'primary' : 'secondary' };
  });
  const path = `/metadata/annotations/${POD_NETWORKS.replace('/', '~1')}`;
  return { type: 'json', operations: [{ op: 'add', path, value: JSON.stringify(networks) }] };
}

function readAnnotation({ metadata }: Pod): Record<string, { ip_addresses: string[]; role: string }> {
  return JSON.parse(metadata.annotations?.[POD_NETWORKS] ?? '{}') as ReturnType<typeof readAnnotation>;
}
