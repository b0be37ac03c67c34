import { describeValue, nameFirst } from '../json.js';
import type { SecondaryNetwork, VmVolume, VmiSpec } from '../kubevirt.js';
import { joinKey } from '../meta.js';
import { DEFAULT_ROUTE_ANNOTATION } from '../names.js';
import type { Delivery } from './nad-guests.js';

/** Default routes that a guest gets by DHCP. The guest uses one of them, and answers from other interfaces may leave through it. */

/** A network on which a guest asks for addresses by DHCP. */
export interface DhcpNetwork {
  readonly name: string;
  /** `namespace/name`; absent for the pod network, or the one in its place. */
  readonly nadKey?: string;
}

/** Networks that a message lists. */
const MAX_LISTED = 8;

/**
 * Returns the networks on which a guest asks DHCP servers of KubeVirt or Holdfast. None if cloud-init has network data, which says what the guest
 * takes from them. SR-IOV and binding plugins have servers of their own, or none.
 * @param secondary the secondary networks of the spec
 */
export function dhcpNetworksOf(spec: VmiSpec | undefined, secondary: readonly SecondaryNetwork[]): DhcpNetwork[] {
  if (spec?.volumes?.some(hasNetworkData) === true) return [];
  const interfaces = spec?.domain?.devices?.interfaces ?? [];
  const others = new Set(interfaces.flatMap(({ name, sriov, binding }) => ((sriov ?? binding) ? name : [])));
  const pod = (spec?.networks ?? []).filter((network) => network.pod !== undefined || network.multus?.default === true);
  const attached = secondary.filter(({ isUnplugRequested }) => !isUnplugRequested);
  const all = [
    ...pod.map(({ name }) => ({ name })),
    ...attached.map(({ name, nad }) => ({ name, nadKey: joinKey(nad.namespace, nad.name) })),
  ];
  return all.filter(({ name }) => !others.has(name));
}

/** True for a cloud-init disk that has network data, or gets it from a Secret. */
export function hasNetworkData({ cloudInitNoCloud, cloudInitConfigDrive }: VmVolume): boolean {
  const {
    networkData = '',
    networkDataBase64 = '',
    networkDataSecretRef,
  } = cloudInitNoCloud ?? cloudInitConfigDrive ?? {};
  return networkDataSecretRef !== undefined || networkData + networkDataBase64 !== '';
}

/**
 * Says that DHCP gives a guest more than one default route, and what to do; undefined if it does not. Responders of Holdfast give one only on the
 * network of the annotation if another network has one.
 * @param wanted the value of the annotation
 */
export function severalDefaultRoutes(
  networks: readonly DhcpNetwork[],
  wanted: string | undefined,
  deliveryOf: (nadKey: string) => Delivery | undefined,
): { readonly networks: readonly string[]; readonly message: string } | undefined {
  const remedies = new Set<string>();
  const found = networks.flatMap(({ name, nadKey }) => {
    const described = describeValue(name);
    if (nadKey === undefined) return { name, text: `${described} (the pod network)` };
    const delivery = deliveryOf(nadKey);
    if (delivery?.kind === 'cni' && delivery.bringsDefaultRoute) {
      remedies.add('remove the default route (routes, isDefaultGateway) from the NetworkAttachmentDefinition');
      return { name, text: `${described} (NetworkAttachmentDefinition ${nadKey})` };
    }
    if (delivery?.kind !== 'guest' || name !== wanted) return [];
    remedies.add(`remove the annotation ${DEFAULT_ROUTE_ANNOTATION}`);
    return { name, text: `${described} (annotation ${DEFAULT_ROUTE_ANNOTATION})` };
  });
  if (found.length < 2) return undefined;
  const listed = found.map(({ text }) => text);
  const message =
    `DHCP gives the guest a default route on each of the networks ${nameFirst(listed, MAX_LISTED)}, so that traffic may leave through the wrong ` +
    `one. Keep one: ${[...remedies].join(', or ')}, or give the guest cloud-init network data`;
  return { networks: found.map(({ name }) => name), message };
}
