import { type Condition, type KubeObject, controllerOf } from './meta.js';
import { VIRTUAL_MACHINE_KIND } from './names.js';

/** The fields of KubeVirt's objects that Holdfast reads; everything else is dropped before it is cached. */

export interface VmNetwork {
  name: string;
  /** Present for a network that Multus attaches; `default` makes it replace the pod's own network. */
  multus?: { networkName: string; default?: boolean };
  pod?: object;
  /** Present for a device of a ResourceClaim (KubeVirt 1.9, gate NetworkDevicesWithDRA): it has no NAD. */
  resourceClaim?: object;
}

export interface VmInterface {
  name: string;
  /** `absent` tells KubeVirt to unplug the interface. */
  state?: string;
  /** As the user wrote it; absent: KubeVirt generates one at each start. */
  macAddress?: string;
  /** Present for an interface that the guest owns itself: its launcher has no such interface. */
  sriov?: object;
  /** Present for an interface that a bridge in the launcher connects to the guest. */
  bridge?: object;
  /** Present for an interface of a network binding plugin. */
  binding?: object;
  dhcpOptions?: VmDhcpOptions;
}

/** Options of DHCPv4 for one interface. */
export interface VmDhcpOptions {
  bootFileName?: string;
  tftpServerName?: string;
  /** IPv4 addresses. */
  ntpServers?: string[];
  /** With the codes 224 to 254. */
  privateOptions?: { option: number; value: string }[];
}

/** A cloud-init disk, as far as its network data is concerned. */
interface CloudInitSource {
  networkDataSecretRef?: { name?: string };
  networkData?: string;
  networkDataBase64?: string;
}

export interface VmVolume {
  name?: string;
  cloudInitNoCloud?: CloudInitSource;
  cloudInitConfigDrive?: CloudInitSource;
}

export interface VmiSpec {
  hostname?: string;
  subdomain?: string;
  networks?: VmNetwork[];
  domain?: { devices?: { autoattachPodInterface?: boolean; interfaces?: VmInterface[] } };
  volumes?: VmVolume[];
}

export interface VirtualMachine extends KubeObject {
  spec?: { template?: { metadata?: { annotations?: Record<string, string> }; spec?: VmiSpec } };
  status?: { printableStatus?: string };
}

export interface VmiInterfaceStatus {
  name?: string;
  podInterfaceName?: string;
  /** Where KubeVirt has it from: a list like `domain, guest-agent, multus-status`. */
  infoSource?: string;
  mac?: string;
  /** The addresses of the launcher's interface, or those that the guest agent reports. */
  ipAddresses?: string[];
}

export interface VirtualMachineInstance extends KubeObject {
  spec?: VmiSpec;
  status?: {
    phase?: string;
    /** Where the guest runs; during a live migration the source. */
    nodeName?: string;
    interfaces?: VmiInterfaceStatus[];
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
    /** Of the latest live migration. */
    migrationState?: { completed?: boolean; failed?: boolean };
  };
}

export interface KubeVirt extends KubeObject {
  spec?: { configuration?: { developerConfiguration?: { featureGates?: string[] } } };
  status?: { phase?: string; conditions?: Condition[]; observedKubeVirtVersion?: string };
}

export function isReportedBy(source: InfoSource, { infoSource = '' }: VmiInterfaceStatus): boolean {
  return infoSource.split(',').some((each) => each.trim() === source);
}

/** Sources of an interface's status: libvirt's domain, the agent in the guest, the annotation of Multus. */
type InfoSource = 'domain' | 'guest-agent' | 'multus-status';

/** True if the guest has ended and does not run again. */
export function hasEnded({ status }: VirtualMachineInstance): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** True if the latest live migration of the guest succeeded. */
export function hasMigrated({ status }: VirtualMachineInstance): boolean {
  return status?.migrationState?.completed === true && status.migrationState.failed !== true;
}

/** A secondary network of a VM. */
export interface SecondaryNetwork {
  /** Its name in `spec.networks`. */
  name: string;
  /** 1-based position among the secondary networks, as in ordinal interface names. */
  position: number;
  nad: { namespace: string; name: string };
  /** The VM's spec asks KubeVirt to unplug the interface. */
  isUnplugRequested: boolean;
}

/**
 * Returns the secondary networks of a VMI spec: attached by Multus, and not in place of the pod network.
 * A `networkName` without a namespace refers to the VM's namespace.
 */
export function secondaryNetworks(spec: VmiSpec | undefined, namespace: string): SecondaryNetwork[] {
  const absent = new Set(
    (spec?.domain?.devices?.interfaces ?? []).flatMap((i) => (i.state === 'absent' ? i.name : [])),
  );
  const found: SecondaryNetwork[] = [];
  for (const { name, multus } of spec?.networks ?? []) {
    if (multus === undefined || multus.default === true) continue;
    const nad = parseNetworkName(multus.networkName, namespace);
    found.push({ name, position: found.length + 1, nad, isUnplugRequested: absent.has(name) });
  }
  return found;
}

const ADDED_NETWORK: VmNetwork = { name: 'default', pod: {} };

/** Returns the networks of a VMI. To that of a template without networks, KubeVirt adds the pod network (`SetDefaultNetworkInterface`). */
export function vmiNetworksOf({ networks = [], domain }: VmiSpec): VmNetwork[] {
  const { autoattachPodInterface, interfaces = [] } = domain?.devices ?? {};
  const isAdded = networks.length + interfaces.length === 0 && autoattachPodInterface !== false;
  return isAdded ? [ADDED_NETWORK] : networks;
}

/** Returns the name of the network that connects a VMI to the pod's own network; undefined if it has none. */
export function podNetworkOf(spec: VmiSpec | undefined): string | undefined {
  return spec?.networks?.find(({ pod }) => pod !== undefined)?.name;
}

/** Returns a network that Multus attaches in place of the pod's own network, with its NAD; undefined if there is none. */
export function replacementOfPodNetwork(
  spec: VmiSpec | undefined,
  namespace: string,
): Pick<SecondaryNetwork, 'name' | 'nad'> | undefined {
  const found = spec?.networks?.find(({ multus }) => multus?.default === true);
  return found?.multus && { name: found.name, nad: parseNetworkName(found.multus.networkName, namespace) };
}

/** Returns the names of the networks that are devices of ResourceClaims. */
export function deviceNetworksOf(spec: VmiSpec | undefined): string[] {
  return (spec?.networks ?? []).flatMap(({ name, resourceClaim }) => (resourceClaim === undefined ? [] : [name]));
}

/** Says about such a network why it has no persistent address, and what to do. */
export const DEVICE_NETWORK_PROBLEM =
  'is a device of a ResourceClaim (resourceClaim) and has no NetworkAttachmentDefinition, so nobody gives it a persistent ' +
  'address. Attach it by multus.networkName, or configure an address in the guest';

function parseNetworkName(networkName: string, namespace: string): { namespace: string; name: string } {
  const slash = networkName.indexOf('/');
  if (slash < 0) return { namespace, name: networkName };
  return { namespace: networkName.slice(0, slash), name: networkName.slice(slash + 1) };
}

/** Returns name and UID of the VirtualMachine that controls a VMI; undefined for a standalone VMI. */
export function controllingVm(vmi: VirtualMachineInstance): { name: string; uid: string } | undefined {
  const controller = controllerOf(vmi);
  if (controller?.kind !== VIRTUAL_MACHINE_KIND || !isKubeVirtGroup(controller.apiVersion)) return undefined;
  return { name: controller.name, uid: controller.uid };
}

/** A regular expression for the versions of KubeVirt's kinds. The admission policies use the same one. */
export const KUBEVIRT_API_VERSIONS = '^kubevirt\\.io/v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$';
const KUBEVIRT_API_VERSION_PATTERN = new RegExp(KUBEVIRT_API_VERSIONS);

/** True for a version of KubeVirt's API group. Any other value in an owner reference is another group or malformed; tenants can write it. */
export function isKubeVirtGroup(apiVersion: string): boolean {
  return KUBEVIRT_API_VERSION_PATTERN.test(apiVersion);
}
