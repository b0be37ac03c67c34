import type { AddressLease } from '../api/address-lease.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance, VmiSpec } from '../api/kubevirt.js';
import { joinKey } from '../api/meta.js';
import { BY_WORKLOAD, CLAIM_INDEXES, VMI_INDEXES, VM_INDEXES } from '../cluster/watch-specs.js';
import { NETWORK_INDEXES } from '../addressing/directory/affected.js';
import { type LeaseRecord, readLease } from '../addressing/lease/lease.js';
import type { WatchSpec } from '../kube/informers.js';
import { ADDRESS_LEASES, IPAM_CLAIMS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../kube/resources.js';
import { secretRefOf } from './network-data/request.js';
import { transformGuestClaim, transformGuestVm, transformGuestVmi } from './transforms.js';

/** Watches with fields that only this process reads, so that other processes do not see their changes. */

/** VMs and VMIs by the `namespace/name` of the Secret in their cloud-init volume. */
export const BY_SECRET = 'secret';

export const GUEST_VMS: WatchSpec<VirtualMachine> = {
  resource: VIRTUAL_MACHINES,
  transform: transformGuestVm,
  indexes: { ...VM_INDEXES, [BY_SECRET]: secretKeysOf },
  optional: true,
};

export const GUEST_VMIS: WatchSpec<VirtualMachineInstance> = {
  resource: VIRTUAL_MACHINE_INSTANCES,
  transform: transformGuestVmi,
  indexes: { ...VMI_INDEXES, [BY_SECRET]: secretKeysOf },
  optional: true,
};

export const GUEST_CLAIMS: WatchSpec<IPAMClaim> = {
  resource: IPAM_CLAIMS,
  transform: transformGuestClaim,
  indexes: { ...CLAIM_INDEXES, ...NETWORK_INDEXES },
  optional: true,
};

/** Leases whose addresses a Secret may hold, by the key of the VM that owns it. */
export const LOCKED_LEASES: WatchSpec<AddressLease, LeaseRecord> = {
  resource: ADDRESS_LEASES,
  fieldSelector: 'spec.networkData.secret!=',
  transform: readLease,
  indexes: { [BY_WORKLOAD]: workloadOfLock },
};

export function workloadOfLock({ networkData }: LeaseRecord): string[] {
  return networkData === undefined ? [] : [joinKey(networkData.namespace, networkData.owner.name)];
}

export function secretKeysOf({ metadata, spec }: VirtualMachine | VirtualMachineInstance): string[] {
  const { template, ...own } = (spec ?? {}) as { template?: { spec?: VmiSpec } } & VmiSpec;
  const name = secretRefOf(template === undefined ? own : template.spec)?.name;
  return name === undefined ? [] : [joinKey(metadata.namespace, name)];
}
