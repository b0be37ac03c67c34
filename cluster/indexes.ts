import { type AddressPool, nadNamespaceOf } from '../api/address-pool.js';
import { type IPAMClaim, claimOwnerOf } from '../api/ipam-claim.js';
import { type VirtualMachine, type VirtualMachineInstance, type VmiSpec, secondaryNetworks } from '../api/kubevirt.js';
import { type KubeObject, joinKey } from '../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_VM_LABEL } from '../api/names.js';
import type { ParsedNad } from './transforms.js';

/** Indexes of the caches that processes share. A workload's key is the `namespace/name` of a VM and its VMI. */
export const BY_WORKLOAD = 'workload';
export const BY_NAD = 'nad';
export const BY_NAMESPACE = 'namespace';
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
  [BY_NAMESPACE]: namespaceOf,
};

export const VMI_INDEXES = {
  [BY_NAD]: (vmi: VirtualMachineInstance) => nadKeysOf(vmi, vmi.spec),
  [BY_NAMESPACE]: namespaceOf,
};

export const CLAIM_INDEXES = {
  [BY_WORKLOAD]: workloadOfClaim,
  [BY_NAMESPACE]: namespaceOf,
  [BY_OWNER_UID]: (claim: IPAMClaim) => {
    const owner = claimOwnerOf(claim);
    return owner === undefined ? [] : [owner.uid];
  },
};

/**
 * Returns the workload key of the claim's owner. A claim without an owner but with our finalizer was created by kubevirt/ipam-extensions and lost
 * its owner to the garbage collector: its label names the VM.
 */
export function workloadOfClaim(claim: IPAMClaim): string[] {
  const { labels, finalizers, namespace } = claim.metadata;
  const label = finalizers?.includes(CLAIM_FINALIZER) ? labels?.[CLAIM_VM_LABEL] : undefined;
  const name = claimOwnerOf(claim)?.name ?? label;
  return name === undefined ? [] : [joinKey(namespace, name)];
}

/** Returns the keys of the NADs that a VM or VMI uses. */
function nadKeysOf(object: KubeObject, spec: VmiSpec | undefined): string[] {
  const networks = secondaryNetworks(spec, object.metadata.namespace ?? '');
  return [...new Set(networks.map(({ nad }) => joinKey(nad.namespace, nad.name)))];
}

function namespaceOf(object: KubeObject): string[] {
  return object.metadata.namespace === undefined ? [] : [object.metadata.namespace];
}
