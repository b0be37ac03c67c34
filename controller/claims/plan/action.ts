import type { EventReason } from '../../../api/event-reasons.js';
import type { ClaimOwner, IPAMClaim } from '../../../api/ipam-claim.js';
import type { ClaimChanges } from './claim-object.js';

/** One change to a claim, or the decision to change nothing. `reason` is a sentence for the log. */
export type Action =
  /** `firstNameHolder` is the claim because of which this one gets the second name. */
  | { kind: 'create'; claim: IPAMClaim; firstNameHolder?: IPAMClaim; reason: string }
  /** The resourceVersion of `claim`, as it was read, is the precondition. */
  | { kind: 'update'; claim: IPAMClaim; owner: ClaimOwner; set: ClaimChanges; reason: string }
  /** Delete the claim, then remove our finalizer, then create the successor if there is one. */
  | {
      kind: 'release';
      claim: IPAMClaim;
      successor?: IPAMClaim;
      isOwnerAlive?: true;
      reason: string;
      event?: WorkloadEvent;
    }
  | { kind: 'keep'; claim: IPAMClaim; reason: string }
  /** Nothing can be done until something else has happened; a watch event then triggers another sync, or `requeueAfterMs` does. */
  | { kind: 'wait'; claimName: string; reason: string; event?: WorkloadEvent; requeueAfterMs?: number }
  /** Only a user can resolve it. `blockedBy` names the claim that has to be deleted. */
  | { kind: 'refuse'; reason: string; event: WorkloadEvent; blockedBy?: string };

export type ActionKind = Action['kind'];

/** An event for the user, on the VM or, if there is no VM, on the VMI; on a claim, with or without its owner, if it is about that claim alone. */
export interface WorkloadEvent {
  reason: EventReason;
  message: string;
  regarding: 'vm' | 'vmi' | IPAMClaim | { claimAndOwner: IPAMClaim };
}
