import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { EventReason } from '../../api/names.js';

/** An event for the user, on the VM or, if there is no VM, on the VMI; on the claim if there is neither. */
export interface WorkloadEvent {
  reason: EventReason;
  message: string;
  regarding: 'vm' | 'vmi' | IPAMClaim;
}
