import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import { CLAIM_INDEXES, VMI_INDEXES, VM_INDEXES } from '../cluster/indexes.js';
import type { WatchSpec } from '../kube/informers.js';
import { IPAM_CLAIMS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../kube/resources.js';
import { transformGuestClaim, transformGuestVm, transformGuestVmi } from './transforms.js';

/** Watches with fields that only this process reads, so that other processes do not see their changes. */

export const GUEST_VMS: WatchSpec<VirtualMachine> = {
  resource: VIRTUAL_MACHINES,
  transform: transformGuestVm,
  indexes: VM_INDEXES,
  optional: true,
};

export const GUEST_VMIS: WatchSpec<VirtualMachineInstance> = {
  resource: VIRTUAL_MACHINE_INSTANCES,
  transform: transformGuestVmi,
  indexes: VMI_INDEXES,
  optional: true,
};

export const GUEST_CLAIMS: WatchSpec<IPAMClaim> = {
  resource: IPAM_CLAIMS,
  transform: transformGuestClaim,
  indexes: CLAIM_INDEXES,
  optional: true,
};
