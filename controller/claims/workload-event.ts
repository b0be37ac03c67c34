import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { EventReason } from '../../api/event-reasons.js';

/** An event for the user, on the VM or, if there is no VM, on the VMI; on a claim, with or without its owner, if it is about that claim alone. */
export interface WorkloadEvent {
  reason: EventReason;
  message: string;
  regarding: 'vm' | 'vmi' | IPAMClaim | { claimAndOwner: IPAMClaim };
}
