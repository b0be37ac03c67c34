import { isDeepStrictEqual } from 'node:util';
import type { AddressPool } from '../api/address-pool.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { type IpamDelegation, callingPluginFingerprints, readIpamDelegation } from '../api/ipam-delegation.js';
import { truncate } from '../api/json.js';
import {
  type KubeVirt,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VmInterface,
  type VmNetwork,
  type VmiInterfaceStatus,
  type VmiSpec,
  hasEnded,
  hasMigrated,
  isReportedBy,
} from '../api/kubevirt.js';
import { layer2SegmentOf } from '../api/layer2-segment.js';
import { MAX_REQUESTED_ADDRESSES_LENGTH, MAX_VM_NETWORKS } from '../api/limits.js';
import type { KubeObject, ObjectMeta } from '../api/meta.js';
import { type Delivery, type NadGuestOptions, deliveryOf, readNadGuestOptions } from '../api/nad-guests.js';
import {
  IPS_ALLOCATED,
  PERSISTENT_IPS_LABEL,
  PRIMARY_NETWORK_LABEL,
  REQUESTED_ADDRESSES_ANNOTATION,
} from '../api/names.js';
import { type NetworkAttachmentDefinition, type NetworkConfig, parseNetworkConfig } from '../api/network-attachment.js';
import type { ObjectChange } from '../kube/informer.js';

/** Its fields are not needed. */
const POD_NETWORK = Object.freeze({});
/** The binding of an interface: its settings are not needed. */
const BRIDGE = Object.freeze({});
/** Of a MAC address with separators. */
const MAC_LENGTH = 17;
/** Of KubeVirt; a longer text is no version. */
const MAX_VERSION_LENGTH = 64;

type MultusNetwork = NonNullable<VmNetwork['multus']>;

/** A NAD whose config was parsed when it was cached. */
export interface ParsedNad extends KubeObject {
  config: NetworkConfig;
  /** The IPAM to which the NAD delegates. */
  delegation: IpamDelegation;
  /** Who brings addresses to the interface. */
  delivery: Delivery;
  /** Settings for guests whose pool does not set them. */
  guestOptions?: NadGuestOptions;
  /** Fingerprints of the plugins that delegate IPAM to Holdfast; undefined if the config is a file on the nodes. */
  pluginFingerprints: readonly string[] | undefined;
  /** The layer-2 segment of the network, if the NAD delegates IPAM to Holdfast or to none, and its config names it. */
  segment?: string;
}

/** Transforms of objects before they are cached. Fields that are not named here are dropped. */

export function transformVm({ metadata, spec }: VirtualMachine): VirtualMachine {
  const { finalizers } = metadata;
  const small: VirtualMachine = { metadata: { ...identityMetadataOf(metadata), ...(finalizers && { finalizers }) } };
  const template = spec?.template;
  if (template?.spec === undefined) return small;
  const annotations = requestedAddressesIn(template.metadata?.annotations);
  const kept = annotations && { metadata: { annotations } };
  return { ...small, spec: { template: { ...kept, spec: transformVmiSpec(template.spec) } } };
}

export function transformVmi(vmi: VirtualMachineInstance): VirtualMachineInstance {
  const { metadata, spec } = vmi;
  const { ownerReferences } = metadata;
  const annotations = requestedAddressesIn(metadata.annotations);
  const status = transformVmiStatus(vmi);
  return {
    metadata: {
      ...identityMetadataOf(metadata),
      ...(ownerReferences && { ownerReferences }),
      ...(annotations && { annotations }),
    },
    ...(spec && { spec: transformVmiSpec(spec, hasMigrated(vmi)) }),
    ...(Object.values(status).flat().length > 0 && { status }),
  };
}

function transformVmiStatus(vmi: VirtualMachineInstance): NonNullable<VirtualMachineInstance['status']> {
  const { phase, interfaces = [] } = vmi.status ?? {};
  return {
    ...(phase !== undefined && hasEnded(vmi) && { phase }),
    ...(hasMigrated(vmi) && { migrationState: { completed: true } }),
    interfaces: interfaces.map((reported) => ({
      ...(reported.name !== undefined && { name: reported.name }),
      ...(reported.podInterfaceName !== undefined && { podInterfaceName: reported.podInterfaceName }),
      ...domainMacOf(reported),
    })),
  };
}

/** The MAC address of the domain's interface. What the guest's agent reports never counts. */
function domainMacOf(reported: VmiInterfaceStatus): Pick<VmiInterfaceStatus, 'mac' | 'infoSource'> {
  const { mac = '' } = reported;
  if (mac === '' || mac.length > MAC_LENGTH || !isReportedBy('domain', reported)) return {};
  return { mac, infoSource: 'domain' };
}

/** Keeps of the status only the addresses, or whether an IPAM has answered. Metadata is kept except managedFields, because claims are patched. */
export function transformClaim(claim: IPAMClaim): IPAMClaim {
  const { managedFields: _dropped, ...metadata } = claim.metadata as ObjectMeta & { managedFields?: unknown };
  // after a failure, an IPAM writes a status without addresses
  const ips = claim.status?.ips ?? [];
  if (ips.length > 0) return { metadata, spec: claim.spec, status: { ips } };
  const answer = claim.status?.conditions?.find(({ type }) => type === IPS_ALLOCATED);
  const conditions = answer && [{ ...answer, message: '' }];
  return { metadata, spec: claim.spec, ...(conditions && { status: { ips, conditions } }) };
}

export function transformNad(nad: NetworkAttachmentDefinition): ParsedNad {
  const { creationTimestamp } = nad.metadata;
  // the oldest NAD of a network has precedence
  const metadata = {
    ...identityMetadataOf(nad.metadata),
    ...(creationTimestamp !== undefined && { creationTimestamp }),
  };
  const wire = layer2SegmentOf(nad);
  const guestOptions = readNadGuestOptions(nad);
  return {
    metadata,
    config: parseNetworkConfig(nad),
    delegation: readIpamDelegation(nad),
    delivery: deliveryOf(nad),
    ...(guestOptions && { guestOptions }),
    pluginFingerprints: callingPluginFingerprints(nad),
    ...(wire !== undefined && { segment: wire }),
  };
}

/** Drops only managedFields, because pools are patched. */
export function transformPool(pool: AddressPool): AddressPool {
  const { managedFields: _dropped, ...metadata } = pool.metadata as ObjectMeta & { managedFields?: unknown };
  return { ...pool, metadata };
}

export function transformKubeVirt({ metadata, spec, status }: KubeVirt): KubeVirt {
  const featureGates = spec?.configuration?.developerConfiguration?.featureGates ?? [];
  const { creationTimestamp } = metadata;
  const { observedKubeVirtVersion } = status ?? {};
  return {
    metadata: { ...identityMetadataOf(metadata), ...(creationTimestamp !== undefined && { creationTimestamp }) },
    spec: { configuration: { developerConfiguration: { featureGates } } },
    ...(typeof observedKubeVirtVersion === 'string' &&
      observedKubeVirtVersion.length <= MAX_VERSION_LENGTH && { status: { observedKubeVirtVersion } }),
  };
}

export function transformNamespace({ metadata }: KubeObject): KubeObject {
  const labels = pickKeys(metadata.labels, [PERSISTENT_IPS_LABEL, PRIMARY_NETWORK_LABEL]);
  return { metadata: { ...identityMetadataOf(metadata), ...(labels && { labels }) } };
}

/** Keeps nothing that a node's heartbeats change. */
export function transformNode({ metadata }: KubeObject): KubeObject {
  const { labels } = metadata;
  return { metadata: { ...identityMetadataOf(metadata), ...(labels && { labels }) } };
}

/** @param keepsBridges keep the interfaces with bridge binding, which only matter after a live migration */
function transformVmiSpec({ networks = [], domain }: VmiSpec, keepsBridges = false): VmiSpec {
  const telling = (domain?.devices?.interfaces ?? [])
    .slice(0, MAX_VM_NETWORKS)
    .map((each) => transformInterface(each, keepsBridges))
    .filter((each) => Object.keys(each).length > 1);
  return {
    // networks that Multus does not attach keep their name, because users may request addresses on them
    networks: networks
      .slice(0, MAX_VM_NETWORKS)
      .map(({ name, multus, pod, resourceClaim }) => ({
        name,
        ...(multus && { multus: transformMultusNetwork(multus) }),
        ...(pod && { pod: POD_NETWORK }),
        ...(resourceClaim && { resourceClaim: {} }),
      })),
    ...(telling.length > 0 && { domain: { devices: { interfaces: telling } } }),
  };
}

function transformMultusNetwork({ networkName, default: isDefault }: MultusNetwork): MultusNetwork {
  return { networkName, ...(isDefault !== undefined && { default: isDefault }) };
}

/** Keeps only the beginning of a request that is too long, because it is rejected anyway. */
function requestedAddressesIn(annotations: Record<string, string> | undefined): Record<string, string> | undefined {
  const request = annotations?.[REQUESTED_ADDRESSES_ANNOTATION];
  if (request === undefined) return undefined;
  return { [REQUESTED_ADDRESSES_ANNOTATION]: truncate(request, MAX_REQUESTED_ADDRESSES_LENGTH) };
}

function transformInterface({ name, state, macAddress, bridge }: VmInterface, keepsBridge: boolean): VmInterface {
  return {
    name,
    ...(state !== undefined && { state }),
    ...(macAddress !== undefined && { macAddress }),
    ...(keepsBridge && bridge && { bridge: BRIDGE }),
  };
}

export function identityMetadataOf(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, resourceVersion, deletionTimestamp } = metadata;
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
  };
}

export function pickKeys(
  map: Record<string, string> | undefined,
  keys: readonly string[],
): Record<string, string> | undefined {
  const found = Object.entries(map ?? {}).filter(([key]) => keys.includes(key));
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

/** True unless only labels, annotations or other fields that nobody reads have changed: a tenant may write them all the time. */
export function changesNetwork({ type, object, before }: ObjectChange<ParsedNad>): boolean {
  if (type !== 'changed' || before === undefined) return true;
  const withoutVersion = (nad: ParsedNad) => ({ ...nad, metadata: { ...nad.metadata, resourceVersion: undefined } });
  return !isDeepStrictEqual(withoutVersion(before), withoutVersion(object));
}
