import type { EventReason } from '../../api/names.js';

/** An event for the user, on the VM or, if there is no VM, on the VMI. */
export interface WorkloadEvent {
  reason: EventReason;
  message: string;
  regarding: 'vm' | 'vmi';
}
