import { isDeepStrictEqual } from 'node:util';
import type { AddressPool } from '../api/address-pool.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { type IpamDelegation, callingPluginFingerprints, readIpamDelegation } from '../api/networks/ipam-delegation.js';
import { omitUndefined, truncate } from '../api/json.js';
import {
  type KubeVirt,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VmInterface,
  type VmNetwork,
  type VmVolume,
  type VmiInterfaceStatus,
  type VmiSpec,
  hasEnded,
  hasMigrated,
  isReportedBy,
  vmiNetworksOf,
} from '../api/kubevirt.js';
import { hasNetworkData } from '../api/networks/default-routes.js';
import { layer2SegmentOf } from '../api/networks/layer2-segment.js';
import { MAX_GUEST_TEXT_LENGTH, MAX_REQUESTED_ADDRESSES_LENGTH, MAX_VM_NETWORKS } from '../api/limits.js';
import type { KubeObject, ObjectMeta, OwnerReference } from '../api/meta.js';
import { type Delivery, type NadGuestOptions, deliveryOf, readNadGuestOptions } from '../api/networks/nad-guests.js';
import {
  DEFAULT_ROUTE_ANNOTATION,
  IPS_ALLOCATED,
  PERSISTENT_IPS_LABEL,
  PRIMARY_NETWORK_LABEL,
  REQUESTED_ADDRESSES_ANNOTATION,
} from '../api/names.js';
import {
  type NetworkAttachmentDefinition,
  type NetworkConfig,
  parseNetworkConfig,
} from '../api/networks/network-attachment.js';
import type { ObjectChange } from '../kube/informers/informer.js';
import { datedMetadataOf, identityMetadataOf, pickKeys, transformReference } from './metadata.js';
import { intern, share } from './share.js';

/** Its fields are not needed. */
const POD_NETWORK = Object.freeze({});
/** The binding of an interface: its settings are not needed. */
const BINDING = Object.freeze({});
/** A cloud-init disk with network data, which is not read. */
const NETWORK_DATA: VmVolume[] = [{ cloudInitNoCloud: { networkDataSecretRef: {} } }];
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

/**
 * Transforms of objects before they are cached. Fields that are not named here are dropped. Objects are built by literals with all fields that most of them have:
 * one that grows by assignments is half as big again, one that is built from many spreads is four times as big.
 */

export function transformVm({ metadata, spec }: VirtualMachine): VirtualMachine {
  const small = ownerMetadataOf(metadata);
  if (metadata.finalizers !== undefined) small.finalizers = share(metadata.finalizers);
  const template = spec?.template;
  if (template?.spec === undefined) return { metadata: small };
  const annotations = requestsIn(template.metadata?.annotations);
  const kept = annotations && { metadata: { annotations } };
  return { metadata: small, spec: share({ template: { ...kept, spec: transformVmiSpec(template.spec) } }) };
}

export function transformVmi(vmi: VirtualMachineInstance): VirtualMachineInstance {
  const references = vmi.metadata.ownerReferences;
  const metadata = ownerMetadataOf(vmi.metadata, references && share(references.map(transformReference)));
  const annotations = requestsIn(vmi.metadata.annotations);
  if (annotations !== undefined) metadata.annotations = annotations;
  const spec = vmi.spec && share(transformVmiSpec(vmi.spec, hasMigrated(vmi)));
  const status = transformVmiStatus(vmi);
  return omitUndefined({ metadata, spec, status: Object.values(status).flat().length > 0 ? status : undefined });
}

/** The objects that a VM owns have its name and its UID, too. */
function ownerMetadataOf(metadata: ObjectMeta, ownerReferences?: OwnerReference[]): ObjectMeta {
  const { name, namespace, uid, resourceVersion, deletionTimestamp } = metadata;
  const small: ObjectMeta = omitUndefined({
    name: intern(name),
    namespace: namespace && intern(namespace),
    uid: uid && intern(uid),
    resourceVersion,
    ownerReferences,
  });
  if (deletionTimestamp !== undefined) small.deletionTimestamp = deletionTimestamp;
  return small;
}

function transformVmiStatus(vmi: VirtualMachineInstance): NonNullable<VirtualMachineInstance['status']> {
  const { phase, interfaces = [] } = vmi.status ?? {};
  const status: NonNullable<VirtualMachineInstance['status']> = { interfaces: interfaces.map(transformReported) };
  if (phase !== undefined && hasEnded(vmi)) status.phase = phase;
  if (hasMigrated(vmi)) status.migrationState = { completed: true };
  return status;
}

function transformReported(reported: VmiInterfaceStatus): VmiInterfaceStatus {
  const { name, podInterfaceName } = reported;
  const { mac, infoSource } = domainMacOf(reported);
  return omitUndefined({
    mac,
    infoSource,
    name: name && intern(name),
    podInterfaceName: podInterfaceName && intern(podInterfaceName),
  });
}

/** The MAC address of the domain's interface. What the guest's agent reports never counts. */
function domainMacOf(reported: VmiInterfaceStatus): Pick<VmiInterfaceStatus, 'mac' | 'infoSource'> {
  const { mac = '' } = reported;
  if (mac === '' || mac.length > MAC_LENGTH || !isReportedBy('domain', reported)) return {};
  return { mac, infoSource: 'domain' };
}

/** Keeps of the status only the addresses, or whether an IPAM has answered. Metadata is kept except managedFields, because claims are patched. */
export function transformClaim(claim: IPAMClaim): IPAMClaim {
  const spec = share(claim.spec);
  const metadata = transformClaimMetadata(claim.metadata);
  // after a failure, an IPAM writes a status without addresses
  const ips = claim.status?.ips ?? [];
  if (ips.length > 0) return { metadata, spec, status: { ips } };
  const answer = claim.status?.conditions?.find(({ type }) => type === IPS_ALLOCATED);
  const conditions = answer && [{ ...answer, message: '' }];
  return { metadata, spec, ...(conditions && { status: { ips, conditions } }) };
}

function transformClaimMetadata(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = metadata;
  const { labels, annotations, finalizers, ownerReferences } = metadata;
  const small: ObjectMeta = omitUndefined({
    name,
    namespace: namespace && intern(namespace),
    uid,
    resourceVersion,
    generation,
    creationTimestamp: creationTimestamp && intern(creationTimestamp),
    finalizers: finalizers && share(finalizers),
    // name and UID of the owner are in all three
    ownerReferences: ownerReferences && share(ownerReferences.map(transformReference)),
    labels: labels && internValues(labels),
    annotations: annotations && internValues(annotations),
  });
  if (deletionTimestamp !== undefined) small.deletionTimestamp = deletionTimestamp;
  return small;
}

/** In place: a copy would need more memory. */
function internValues(texts: Record<string, string>): Record<string, string> {
  for (const [key, text] of Object.entries(texts)) texts[key] = intern(text);
  return texts;
}

export function transformNad(nad: NetworkAttachmentDefinition): ParsedNad {
  const segment = layer2SegmentOf(nad);
  const guestOptions = readNadGuestOptions(nad);
  return {
    // the oldest NAD of a network has precedence
    metadata: datedMetadataOf(nad.metadata),
    config: parseNetworkConfig(nad),
    delegation: readIpamDelegation(nad),
    delivery: deliveryOf(nad),
    ...(guestOptions && { guestOptions }),
    pluginFingerprints: callingPluginFingerprints(nad),
    ...(segment !== undefined && { segment }),
  };
}

/** Drops only managedFields, because pools are patched. */
export function transformPool(pool: AddressPool): AddressPool {
  const { managedFields: _dropped, ...metadata } = pool.metadata as ObjectMeta & { managedFields?: unknown };
  return { ...pool, metadata };
}

export function transformKubeVirt({ metadata, spec, status }: KubeVirt): KubeVirt {
  const featureGates = spec?.configuration?.developerConfiguration?.featureGates ?? [];
  const { observedKubeVirtVersion } = status ?? {};
  return {
    metadata: datedMetadataOf(metadata),
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
function transformVmiSpec(spec: VmiSpec, keepsBridges = false): VmiSpec {
  const { domain, volumes = [] } = spec;
  const telling = (domain?.devices?.interfaces ?? [])
    .slice(0, MAX_VM_NETWORKS)
    .map((each) => transformInterface(each, keepsBridges))
    .filter((each) => Object.keys(each).length > 1);
  return {
    // networks that Multus does not attach keep their name, because users may request addresses on them
    networks: vmiNetworksOf(spec)
      .slice(0, MAX_VM_NETWORKS)
      .map(({ name, multus, pod, resourceClaim }) =>
        share({
          name,
          ...(multus && { multus: transformMultusNetwork(multus) }),
          ...(pod && { pod: POD_NETWORK }),
          ...(resourceClaim && { resourceClaim: {} }),
        }),
      ),
    ...(telling.length > 0 && { domain: { devices: { interfaces: telling } } }),
    ...(volumes.some(hasNetworkData) && { volumes: NETWORK_DATA }),
  };
}

function transformMultusNetwork({ networkName, default: isDefault }: MultusNetwork): MultusNetwork {
  return { networkName, ...(isDefault !== undefined && { default: isDefault }) };
}

/** Keeps only the beginning of a text that is too long, because it is invalid anyway. In a template, null is empty text. */
function requestsIn(annotations: Record<string, string | null> | undefined): Record<string, string> | undefined {
  const request = annotations?.[REQUESTED_ADDRESSES_ANNOTATION];
  const route = annotations?.[DEFAULT_ROUTE_ANNOTATION];
  if (request === undefined && route === undefined) return undefined;
  return {
    ...(request !== undefined && {
      [REQUESTED_ADDRESSES_ANNOTATION]: truncate(request ?? '', MAX_REQUESTED_ADDRESSES_LENGTH),
    }),
    ...(route !== undefined && { [DEFAULT_ROUTE_ANNOTATION]: truncate(route ?? '', MAX_GUEST_TEXT_LENGTH) }),
  };
}

function transformInterface(
  { name, state, macAddress, bridge, sriov, binding }: VmInterface,
  keepsBridge: boolean,
): VmInterface {
  return {
    name,
    ...(state !== undefined && { state }),
    ...(macAddress !== undefined && { macAddress }),
    ...(keepsBridge && bridge && { bridge: BINDING }),
    ...(sriov && { sriov: BINDING }),
    ...(binding && { binding: BINDING }),
  };
}

/** True unless only labels, annotations or other fields that nobody reads have changed: a tenant may write them all the time. */
export function changesNetwork({ type, object, before }: ObjectChange<ParsedNad>): boolean {
  if (type !== 'changed' || before === undefined) return true;
  const withoutVersion = (nad: ParsedNad) => ({ ...nad, metadata: { ...nad.metadata, resourceVersion: undefined } });
  return !isDeepStrictEqual(withoutVersion(before), withoutVersion(object));
}
