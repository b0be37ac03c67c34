import type { Condition, KubeObject } from './meta.js';
import { controllerOf } from './meta.js';
import { VIRTUAL_MACHINE_KIND } from './names.js';

/** The fields of KubeVirt's objects that Holdfast reads; everything else is dropped before it is cached. */

export interface VmNetwork {
  name: string;
  /** Present for a network that Multus attaches; `default` makes it replace the pod's own network. */
  multus?: { networkName: string; default?: boolean };
  pod?: object;
}

export interface VmInterface {
  name: string;
  /** `absent` asks KubeVirt to unplug the interface. */
  state?: string;
  /** As the user wrote it; absent: KubeVirt makes one up at each start. */
  macAddress?: string;
}

export interface VmiSpec {
  networks?: VmNetwork[];
  domain?: { devices?: { interfaces?: VmInterface[] } };
}

export interface VirtualMachine extends KubeObject {
  spec?: { template?: { metadata?: { annotations?: Record<string, string> }; spec?: VmiSpec } };
}

export interface VmiInterfaceStatus {
  name?: string;
  podInterfaceName?: string;
  infoSource?: string;
}

export interface VirtualMachineInstance extends KubeObject {
  spec?: VmiSpec;
  status?: { phase?: string; interfaces?: VmiInterfaceStatus[] };
}

export interface KubeVirt extends KubeObject {
  spec?: { configuration?: { developerConfiguration?: { featureGates?: string[] } } };
  status?: { phase?: string; conditions?: Condition[] };
}

/** A secondary network of a VM. */
export interface SecondaryNetwork {
  /** Its name in `spec.networks`. */
  name: string;
  /** 1-based position among the secondary networks: what ordinal interface names count. */
  position: number;
  nad: { namespace: string; name: string };
  /** The interface is asked to be unplugged. */
  isUnplugRequested: boolean;
}

/**
 * The secondary networks of a VMI spec: attached by Multus, and not in place of the pod network.
 * A `networkName` without a namespace is in the VM's own.
 */
export function secondaryNetworks(spec: VmiSpec | undefined, namespace: string): SecondaryNetwork[] {
  const absent = new Set(
    (spec?.domain?.devices?.interfaces ?? []).filter((i) => i.state === 'absent').map((i) => i.name),
  );
  const found: SecondaryNetwork[] = [];
  for (const { name, multus } of spec?.networks ?? []) {
    if (multus === undefined || multus.default === true) continue;
    const nad = parseNetworkName(multus.networkName, namespace);
    found.push({ name, position: found.length + 1, nad, isUnplugRequested: absent.has(name) });
  }
  return found;
}

function parseNetworkName(networkName: string, namespace: string): { namespace: string; name: string } {
  const slash = networkName.indexOf('/');
  if (slash < 0) return { namespace, name: networkName };
  return { namespace: networkName.slice(0, slash), name: networkName.slice(slash + 1) };
}

/** The UID and name of the VirtualMachine that controls a VMI; undefined for a standalone VMI. */
export function controllingVm(vmi: VirtualMachineInstance): { name: string; uid: string } | undefined {
  const controller = controllerOf(vmi);
  if (controller?.kind !== VIRTUAL_MACHINE_KIND || !isKubeVirtGroup(controller.apiVersion)) return undefined;
  return { name: controller.name, uid: controller.uid };
}

/** KubeVirt serves its kinds under several versions. The admission policies use the same expression. */
export const KUBEVIRT_API_VERSIONS = '^kubevirt\\.io/v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$';
const KUBEVIRT_API_VERSION_PATTERN = new RegExp(KUBEVIRT_API_VERSIONS);

/** True for a version of KubeVirt's API group. Owner references are tenant-writable: anything else is another group, or malformed. */
export function isKubeVirtGroup(apiVersion: string): boolean {
  return KUBEVIRT_API_VERSION_PATTERN.test(apiVersion);
}
