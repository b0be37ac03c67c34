import type { VmSwitches } from '../../switches.js';
import type { AgentInterface } from './guest-agent.js';
import type { KubeletPod } from '../pod.js';

/** What became of the copy of a guest by QEMU. */
export interface GuestCopy {
  readonly state: 'active' | 'completed' | 'failed';
  /** Why it failed. */
  readonly reason: string;
  /** The guest runs on the source, or already on the target. */
  readonly mode: 'PreCopy' | 'PostCopy';
}

/** The knowledge of virt-handler besides the VMI itself. */
export interface VmiView {
  /** The VMI's launcher pods, in any phase. One in which its guest runs is missing only if it is gone. */
  readonly launchers: readonly KubeletPod[];
  readonly switches: VmSwitches;
  readonly isNodeUp: (node: string) => boolean;
  readonly now: number;
  /** When the copy of the migration in flight began, in milliseconds; the API keeps only seconds. */
  readonly copyingSince?: number | undefined;
  /** The copy of the migration in flight; undefined if no QEMU makes one. */
  readonly copy?: GuestCopy | undefined;
  /** Why virt-launcher cannot start the guest. */
  readonly startError?: string | undefined;
  /** The report of the guest agent; undefined without one. */
  readonly agent?: readonly AgentInterface[] | undefined;
}
