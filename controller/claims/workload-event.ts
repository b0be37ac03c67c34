import type { EventReason } from '../../api/names.js';

/** What a user is told, on the VM or, where there is none, on the VMI. */
export interface WorkloadEvent {
  reason: EventReason;
  message: string;
  regarding: 'vm' | 'vmi';
}
