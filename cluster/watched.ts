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
import { CLAIM_INDEXES, VMI_INDEXES, VM_INDEXES } from './indexes.js';
import type { Watched } from '../kube/informers.js';
import {
  type NetworkAttachment,
  shrinkClaim,
  shrinkKubeVirt,
  shrinkNad,
  shrinkNamespace,
  shrinkNode,
  shrinkPool,
  shrinkVm,
  shrinkVmi,
} from './shrink.js';

/** The kinds that several processes follow: in one process they share the caches. KubeVirt and Multus may come later. */

export const VMS: Watched<VirtualMachine> = {
  resource: VIRTUAL_MACHINES,
  shrink: shrinkVm,
  indexes: VM_INDEXES,
  optional: true,
};
export const VMIS: Watched<VirtualMachineInstance> = {
  resource: VIRTUAL_MACHINE_INSTANCES,
  shrink: shrinkVmi,
  indexes: VMI_INDEXES,
  optional: true,
};
export const CLAIMS: Watched<IPAMClaim> = {
  resource: IPAM_CLAIMS,
  shrink: shrinkClaim,
  indexes: CLAIM_INDEXES,
  optional: true,
};
export const NADS: Watched<NetworkAttachmentDefinition, NetworkAttachment> = {
  resource: NETWORK_ATTACHMENT_DEFINITIONS,
  shrink: shrinkNad,
  optional: true,
};
export const ALL_NAMESPACES: Watched<KubeObject> = { resource: NAMESPACES, shrink: shrinkNamespace };
/** Their names, labels, and whether they are being deleted. */
export const NODE_WATCH: Watched<KubeObject> = { resource: NODES, shrink: shrinkNode };
/** The feature gates of KubeVirt, where ours follows them. */
export const KUBEVIRT_OBJECTS: Watched<KubeVirt> = { resource: KUBEVIRTS, shrink: shrinkKubeVirt, optional: true };
/** Not optional: while the kind is not served, nothing is known of what may be leased. */
export const ADDRESS_POOL_WATCH: Watched<AddressPool> = { resource: ADDRESS_POOLS, shrink: shrinkPool };
