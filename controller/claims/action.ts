import type { ClaimOwner, IPAMClaim } from '../../api/ipam-claim.js';
import type { ClaimChanges } from './claim-object.js';
import type { WorkloadEvent } from './workload-event.js';

/** One thing to do about a claim, or the decision to do nothing; `reason` is a sentence for the log. */
export type Action =
  /** `beside` is the claim that is seen to have the first name; without it, or where that name is free, the claim would have it. */
  | { kind: 'create'; claim: IPAMClaim; beside?: IPAMClaim; reason: string }
  /** `claim` is the one seen: its resourceVersion is the precondition. */
  | { kind: 'update'; claim: IPAMClaim; owner: ClaimOwner; set: ClaimChanges; reason: string }
  /** Delete, then drop our finalizer, then create the successor, where there is one. */
  | { kind: 'release'; claim: IPAMClaim; successor?: IPAMClaim; ownerLives?: true; reason: string }
  | { kind: 'keep'; claim: IPAMClaim; reason: string }
  /** Nothing can be done before something else has happened; its event calls us again. */
  | { kind: 'wait'; claimName: string; reason: string; notice?: WorkloadEvent }
  /** It will not do without a user: `blockedBy` names the claim in the way. */
  | { kind: 'refuse'; reason: string; notice: WorkloadEvent; blockedBy?: string };

export type ActionKind = Action['kind'];
