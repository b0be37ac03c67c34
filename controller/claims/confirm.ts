import type { IPAMClaim } from '../../api/ipam-claim.js';
import { CLAIM_REQUESTED_ADDRESSES } from '../../api/names.js';
import type { Action } from './action.js';

/** The actions of a plan that may be applied, and those that the API server did not confirm. */
export interface Confirmation {
  confirmed: Action[];
  dropped: Action[];
}

/** Returns true for actions that caches alone do not justify: releasing a claim, changing its owner, or changing the requested addresses. */
export function needsConfirmation(action: Action): boolean {
  if (action.kind === 'release') return true;
  if (action.kind !== 'update') return false;
  const { ownerReferences, annotations = {} } = action.set;
  return ownerReferences !== undefined || CLAIM_REQUESTED_ADDRESSES in annotations;
}

/** Confirms a plan that was made from caches. An action that needs confirmation is replaced by the same action of a plan from live objects. */
export function confirm(planned: readonly Action[], live: readonly Action[]): Confirmation {
  const confirmed: Action[] = [];
  const dropped: Action[] = [];
  for (const action of planned) {
    const current = needsConfirmation(action) ? live.find((other) => isSame(action, other)) : action;
    if (current === undefined) dropped.push(action);
    else confirmed.push(current);
  }
  return { confirmed, dropped };
}

/** Returns true if the plan still releases this claim, even if the claim has changed. */
export function isStillReleased(claim: IPAMClaim, live: readonly Action[]): boolean {
  return live.some((action) => action.kind === 'release' && action.claim.metadata.uid === claim.metadata.uid);
}

function isSame(action: Action, other: Action): boolean {
  if (action.kind === 'release' && other.kind === 'release') return isSameVersion(action.claim, other.claim);
  if (action.kind === 'update' && other.kind === 'update') {
    return isSameVersion(action.claim, other.claim) && action.owner.uid === other.owner.uid;
  }
  return false;
}

function isSameVersion(a: IPAMClaim, b: IPAMClaim): boolean {
  return a.metadata.uid === b.metadata.uid && a.metadata.resourceVersion === b.metadata.resourceVersion;
}
