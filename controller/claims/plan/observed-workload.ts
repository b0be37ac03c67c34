import { type DhcpNetwork, dhcpNetworksOf } from '../../../api/networks/default-routes.js';
import type { ClaimOwner, IPAMClaim } from '../../../api/ipam-claim.js';
import {
  type SecondaryNetwork,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VmInterface,
  type VmiInterfaceStatus,
  type VmiSpec,
  hasEnded,
  hasMigrated,
  deviceNetworksOf,
  podNetworkOf,
  replacementOfPodNetwork,
  secondaryNetworks,
} from '../../../api/kubevirt.js';
import { type KubeObject, type ObjectMeta, joinKey } from '../../../api/meta.js';
import type { Delivery } from '../../../api/networks/nad-guests.js';
import type { IpamDelegation } from '../../../api/networks/ipam-delegation.js';
import type { NetworkConfig } from '../../../api/networks/network-attachment.js';
import type { Pod } from '../../../api/pod.js';
import { ownerOfVmi } from '../../../api/vm-claims.js';
import type { PrimaryNetwork } from '../../../cluster/primary-network.js';

export type NetworkLookup =
  | { found: true; config: NetworkConfig; delegation: IpamDelegation['kind']; delivery: Delivery }
  | { found: false };

/** All input of a plan for one workload: the VM and the VMI of one name. */
export interface ObservedWorkload {
  namespace: string;
  name: string;
  /** The feature gate is open and the namespace has not opted out. */
  canCreateClaims: boolean;
  /** NADs are listed. If not, `networks` says nothing, and claims of interfaces that the VM still has do not change. */
  areNetworksKnown: boolean;
  /** Its namespace is labelled for a primary user-defined network, and the feature gate is enabled. */
  needsPrimaryNetwork: boolean;
  primaryNetwork: PrimaryNetwork | undefined;
  isNamespaceDeleted: boolean;
  /** For each owner. */
  maxClaims: number;
  /** How long a restored claim waits for its owner, from its creation. */
  restoreWaitMs: number;
  /** The time of day, which is written into claims. */
  now: number;
  /** The earlier one of the time of day and the monotonic clock: it ends no wait early if a clock is set forward, or was ahead at the start. */
  earliestNow: number;
  vm: ObservedVm | undefined;
  vmi: ObservedVmi | undefined;
  /** Launcher pods with networks that a VMI of this name, of any UID, controls, and those that no VMI controls but that refer to a claim. */
  launchers: readonly Pod[];
  /** Claims whose owner has this name, and those with a name that the workload may need. */
  claims: readonly IPAMClaim[];
  /** By `namespace/name` of the NAD. */
  networks: ReadonlyMap<string, NetworkLookup>;
}

/** A network that may have a claim, with the key, `namespace/name`, of its NAD. */
export interface OwnerNetwork extends SecondaryNetwork {
  readonly nadKey: string;
  /** The pod network, which is a primary user-defined network. */
  readonly isPrimary?: true;
}

/** What the template of a VM, or a VMI, says about networks. It is derived once for each observation. */
export interface OwnerSpec {
  /** KubeVirt copies the annotations of a template to the VMI. */
  readonly annotations: Record<string, string> | undefined;
  /** The names of all networks, the primary one included. */
  readonly networkNames: ReadonlySet<string>;
  /** By name: the secondary networks in the order of the spec, then the pod network if the namespace has a primary network. */
  readonly servedNetworks: ReadonlyMap<string, OwnerNetwork>;
  /** The name of the network that connects the VM to the pod's own network. */
  readonly podNetwork: string | undefined;
  /** The network that Multus attaches in place of the pod's own. */
  readonly replacement: Pick<OwnerNetwork, 'name' | 'nadKey'> | undefined;
  /** The names of devices of ResourceClaims. */
  readonly deviceNetworks: readonly string[];
  readonly dhcpNetworks: readonly DhcpNetwork[];
  /** By name. */
  readonly interfaces: ReadonlyMap<string, VmInterface>;
}

/** A VM as a plan sees it: without the raw spec, so that nothing can derive its networks again. */
interface ObservedVm extends KubeObject {
  readonly spec: OwnerSpec;
}

/** A VMI as a plan sees it: without the raw spec. */
export interface ObservedVmi extends KubeObject {
  /** Its VM, or the VMI itself. */
  readonly owner: ClaimOwner;
  readonly spec: OwnerSpec;
  /** The interfaces that the status reports. */
  readonly reported: readonly VmiInterfaceStatus[];
  /** Its guest does not run again. */
  readonly hasEnded: boolean;
  /** Its guest runs in the target of a live migration. */
  readonly hasMigrated: boolean;
}

/** @param primary the primary network of the namespace */
export function observeVm({ metadata, spec }: VirtualMachine, primary?: PrimaryNetwork): ObservedVm {
  const template = spec?.template;
  return {
    metadata,
    spec: { ...deriveSpec(template?.spec, metadata, primary), annotations: template?.metadata?.annotations },
  };
}

/** @param primary the primary network of the namespace */
export function observeVmi(vmi: VirtualMachineInstance, primary?: PrimaryNetwork): ObservedVmi {
  const { metadata, spec, status } = vmi;
  const derived = { ...deriveSpec(spec, metadata, primary), annotations: metadata.annotations };
  return {
    metadata,
    owner: ownerOfVmi(vmi),
    spec: derived,
    reported: status?.interfaces ?? [],
    hasEnded: hasEnded(vmi),
    hasMigrated: hasMigrated(vmi),
  };
}

function deriveSpec(
  spec: VmiSpec | undefined,
  { namespace = '' }: ObjectMeta,
  primary: PrimaryNetwork | undefined,
): Omit<OwnerSpec, 'annotations'> {
  const secondary = secondaryNetworks(spec, namespace);
  const networks: OwnerNetwork[] = secondary.map(withNadKey);
  const podNetwork = podNetworkOf(spec);
  if (primary !== undefined && podNetwork !== undefined) {
    const { nad, nadKey } = primary;
    networks.push({ name: podNetwork, position: 0, nad, nadKey, isUnplugRequested: false, isPrimary: true });
  }
  const replacement = replacementOfPodNetwork(spec, namespace);
  return {
    networkNames: new Set(spec?.networks?.map(({ name }) => name)),
    servedNetworks: byName(networks),
    podNetwork,
    replacement: replacement && withNadKey(replacement),
    deviceNetworks: deviceNetworksOf(spec),
    dhcpNetworks: dhcpNetworksOf(spec, secondary),
    interfaces: byName(spec?.domain?.devices?.interfaces ?? []),
  };
}

function withNadKey<T extends Pick<SecondaryNetwork, 'nad'>>(network: T): T & { nadKey: string } {
  return { ...network, nadKey: joinKey(network.nad.namespace, network.nad.name) };
}

/** The first of a name counts. KubeVirt rejects a name that is given twice. */
function byName<T extends { name: string }>(items: readonly T[]): Map<string, T> {
  const found = new Map<string, T>();
  for (const item of items) if (!found.has(item.name)) found.set(item.name, item);
  return found;
}
