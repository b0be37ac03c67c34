import type { IPAMClaim } from '../../api/ipam-claim.js';
import { isBeingDeleted } from '../../api/meta.js';
import { IPS_ALLOCATED } from '../../api/names.js';
import type { ObjectChange } from '../../kube/informer.js';
import { conditionOf } from '../../cluster/claim-conditions.js';

/** `allocated` and `refused`: what the condition `IPsAllocated` says. `pending`: no IPAM has answered. `deleting`: the claim keeps its addresses until its finalizer is gone. */
export const CLAIM_STATES = ['allocated', 'deleting', 'pending', 'refused'] as const;
export type ClaimState = (typeof CLAIM_STATES)[number];

/** Counts the cached claims by state. */
export class ClaimStates {
  readonly #counts: Record<ClaimState, number> = { allocated: 0, deleting: 0, pending: 0, refused: 0 };

  get counts(): Readonly<Record<ClaimState, number>> {
    return this.#counts;
  }

  onClaimChange({ type, object, before }: ObjectChange<IPAMClaim>): void {
    if (before !== undefined) this.#counts[stateOf(before)]--;
    if (type !== 'removed') this.#counts[stateOf(object)]++;
  }
}

function stateOf(claim: IPAMClaim): ClaimState {
  if (isBeingDeleted(claim)) return 'deleting';
  const allocated = conditionOf(claim, IPS_ALLOCATED);
  if (allocated === undefined) return 'pending';
  return allocated.status === 'True' ? 'allocated' : 'refused';
}
