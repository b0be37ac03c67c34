import { type AddressPool, nadNamespaceOf } from '../api/address-pool.js';
import { type IPAMClaim, claimOwnerOf, workloadNameOf } from '../api/ipam-claim.js';
import {
  type KubeVirt,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VmiSpec,
  secondaryNetworks,
} from '../api/kubevirt.js';
import { type KubeObject, joinKey } from '../api/meta.js';
import type { NetworkAttachmentDefinition } from '../api/networks/network-attachment.js';
import type { KeyParts } from '../kube/informers/namespaced-map.js';
import type { WatchSpec } from '../kube/informers/informers.js';
import {
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  KUBEVIRTS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  NODES,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../kube/resources.js';
import {
  type ParsedNad,
  transformClaim,
  transformKubeVirt,
  transformNad,
  transformNamespace,
  transformNode,
  transformPool,
  transformVm,
  transformVmi,
} from './transforms.js';

/** Indexes of the caches that processes share. A workload's key is the `namespace/name` of a VM and its VMI. */
export const BY_WORKLOAD = 'workload';
export const BY_NAD = 'nad';
/** VMs by their UID. */
export const BY_UID = 'uid';
/** Claims by the UID of their owner, current or noted in annotations. */
export const BY_OWNER_UID = 'owner-uid';

/** NADs of primary user-defined networks, by their namespace. */
export const BY_PRIMARY_NAMESPACE = 'primary-namespace';

/** Derived pools, by the namespace of their NADs. */
export const BY_NAD_NAMESPACE = 'nad-namespace';

export const POOL_INDEXES = {
  [BY_NAD_NAMESPACE]: (pool: AddressPool) => {
    const namespace = nadNamespaceOf(pool);
    return namespace === undefined ? [] : [namespace];
  },
};

export const NAD_INDEXES = {
  [BY_PRIMARY_NAMESPACE]: (nad: ParsedNad) =>
    nad.config.ok && nad.config.network.primary !== undefined ? namespaceOf(nad) : [],
};

export const VM_INDEXES = {
  [BY_UID]: ({ metadata: { uid } }: VirtualMachine) => (uid === undefined ? [] : [uid]),
  [BY_NAD]: (vm: VirtualMachine) => nadKeysOf(vm, vm.spec?.template?.spec),
};

export const VMI_INDEXES = { [BY_NAD]: (vmi: VirtualMachineInstance) => nadKeysOf(vmi, vmi.spec) };

export const CLAIM_INDEXES = {
  [BY_WORKLOAD]: workloadPartsOf,
  [BY_OWNER_UID]: (claim: IPAMClaim) => {
    const owner = claimOwnerOf(claim);
    return owner === undefined ? [] : [owner.uid];
  },
};

/** Returns the key of the claim's workload; none without one. */
export function workloadOfClaim(claim: IPAMClaim): string[] {
  return workloadPartsOf(claim).map(({ namespace, name }) => joinKey(namespace, name));
}

function workloadPartsOf(claim: IPAMClaim): KeyParts[] {
  const { namespace = '' } = claim.metadata;
  const name = workloadNameOf(claim);
  return name === undefined ? [] : [{ namespace, name }];
}

/** Returns the keys of the NADs that a VM or VMI uses. */
function nadKeysOf(object: KubeObject, spec: VmiSpec | undefined): string[] {
  const networks = secondaryNetworks(spec, object.metadata.namespace ?? '');
  return [...new Set(networks.map(({ nad }) => joinKey(nad.namespace, nad.name)))];
}

function namespaceOf(object: KubeObject): string[] {
  return object.metadata.namespace === undefined ? [] : [object.metadata.namespace];
}

/** Watches that several processes use; in one process they share the caches. KubeVirt and Multus may be installed later, so their kinds are optional. */

export const VM_WATCH: WatchSpec<VirtualMachine> = {
  resource: VIRTUAL_MACHINES,
  transform: transformVm,
  indexes: VM_INDEXES,
  optional: true,
};
export const VMI_WATCH: WatchSpec<VirtualMachineInstance> = {
  resource: VIRTUAL_MACHINE_INSTANCES,
  transform: transformVmi,
  indexes: VMI_INDEXES,
  optional: true,
};
export const CLAIM_WATCH: WatchSpec<IPAMClaim> = {
  resource: IPAM_CLAIMS,
  transform: transformClaim,
  indexes: CLAIM_INDEXES,
  optional: true,
};
export const NAD_WATCH: WatchSpec<NetworkAttachmentDefinition, ParsedNad> = {
  resource: NETWORK_ATTACHMENT_DEFINITIONS,
  transform: transformNad,
  indexes: NAD_INDEXES,
  optional: true,
};
export const NAMESPACE_WATCH: WatchSpec<KubeObject> = { resource: NAMESPACES, transform: transformNamespace };
/** Names and labels of nodes, and whether they are being deleted. */
export const NODE_WATCH: WatchSpec<KubeObject> = { resource: NODES, transform: transformNode };
/** KubeVirt's feature gates, which ours may follow. */
export const KUBEVIRT_WATCH: WatchSpec<KubeVirt> = {
  resource: KUBEVIRTS,
  transform: transformKubeVirt,
  optional: true,
};
/** Not optional: while the kind is not served, it is unknown which addresses may be allocated. */
export const ADDRESS_POOL_WATCH: WatchSpec<AddressPool> = {
  resource: ADDRESS_POOLS,
  transform: transformPool,
  indexes: POOL_INDEXES,
};
