import type { IPAMClaim } from '../../api/ipam-claim.js';
import { CLAIM_REQUESTED_ADDRESSES } from '../../api/names.js';
import type { Action } from './action.js';

/** What of a plan may be done, and what the caches were wrong about. */
export interface Confirmation {
  confirmed: Action[];
  dropped: Action[];
}

/** True for what must not rest on caches alone: letting a claim go, saying whose it is, and what a VM that is stopped shall have. */
export function needsConfirmation(action: Action): boolean {
  if (action.kind === 'release') return true;
  if (action.kind !== 'update') return false;
  const { ownerReferences, annotations = {} } = action.set;
  return ownerReferences !== undefined || CLAIM_REQUESTED_ADDRESSES in annotations;
}

/**
 * Of a plan made from caches, what holds: actions that need it are confirmed by the same action in a plan from the live objects, which then
 * stands for them.
 */
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

/** True where the plan still lets this claim go, whatever has been written to it. */
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
