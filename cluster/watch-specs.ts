import type { AddressPool } from '../api/address-pool.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { KubeVirt, VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import type { KubeObject } from '../api/meta.js';
import type { NetworkAttachmentDefinition } from '../api/network-attachment.js';
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
import { CLAIM_INDEXES, NAD_INDEXES, POOL_INDEXES, VMI_INDEXES, VM_INDEXES } from './indexes.js';
import type { WatchSpec } from '../kube/informers.js';
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
