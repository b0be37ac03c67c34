import { EventReason } from '../../../api/event-reasons.js';
import type { ClaimOwner, IPAMClaim } from '../../../api/ipam-claim.js';
import { isBeingDeleted, joinKey } from '../../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_OWNER_UID, CLAIM_REQUESTED_ADDRESSES } from '../../../api/names.js';
import { pickClaim, servedVmNetwork } from '../../../api/vm-claims.js';
import type { Action } from './action.js';
import { findLateRequest, markLateRequest } from './address-requests.js';
import { changesTo } from './claim-object.js';
import type { DesiredClaim, InterfaceProblem } from './desired-claim.js';
import { type OwnerClaims, findDesiredClaims } from './desired.js';
import { planMissingClaim, regardingKind } from './missing-claims.js';
import type { ObservedWorkload } from './observed-workload.js';
import { type OwnedClaim, ownedClaims } from './ownership.js';
import { releaseAfterOwner, releaseAfterUnplug, releaseAfterUserDelete, releaseOwnerless } from './release-rules.js';
import { isRestored, keepRestored, waitsForOwner } from './restored-claims.js';

/** Plans the changes to the claims of one workload. Pure: the same observation gives the same actions. */
export function plan(observed: ObservedWorkload): Action[] {
  const owned = ownedClaims(observed);
  const byOwner = findDesiredClaims(observed, owned);
  const assigned = assignClaims(byOwner, owned, observed);
  const served = new Set(assigned.values());
  const usedNames = new Set<string>();
  const provided = byOwner.flatMap(({ owner, claims }) => {
    const missing = claims.filter((desired) => !served.has(desired));
    const room = remainingClaims(owner, owned, observed);
    return [
      ...missing
        .slice(0, room)
        .map((desired) => planMissingClaim({ newOwner: owner, desired, observed, owned, usedNames })),
      ...refuseExcess(owner, missing.slice(room), observed),
    ];
  });
  const taken = new Set(provided.flatMap((action) => (isChange(action) ? [action.claim] : [])));
  return [
    ...owned
      .filter(({ claim }) => !taken.has(claim))
      .map((claim) => planClaim(claim, assigned.get(claim), byOwner, observed)),
    ...releaseOwnerless(observed),
    ...provided,
    ...byOwner.flatMap(({ owner, problems }) => problems.map((problem) => refuse(owner, problem, observed))),
    ...[...assigned].flatMap(([claim, desired]) => {
      const problem = findLateRequest(claim, desired, observed);
      return problem === undefined ? [] : [refuse(claim.owner, problem, observed)];
    }),
  ];
}

/** Returns true for an action on an existing claim. */
function isChange(action: Action): action is Extract<Action, { kind: 'update' | 'release' }> {
  return action.kind === 'update' || action.kind === 'release';
}

function refuse(owner: ClaimOwner, { reason, message }: InterfaceProblem, observed: ObservedWorkload): Action {
  return { kind: 'refuse', reason: message, event: { reason, message, regarding: regardingKind(owner, observed) } };
}

/** Returns how many more claims the owner may have. Existing claims are never released because of the limit. */
function remainingClaims(owner: ClaimOwner, owned: readonly OwnedClaim[], { maxClaims }: ObservedWorkload): number {
  return Math.max(0, maxClaims - owned.filter((claim) => claim.owner.uid === owner.uid).length);
}

function refuseExcess(owner: ClaimOwner, excess: readonly DesiredClaim[], observed: ObservedWorkload): Action[] {
  const [first] = excess;
  if (first === undefined) return [];
  const { namespace, name, maxClaims } = observed;
  const which = excess.length === 1 ? '' : ` and ${excess.length - 1} more`;
  const message =
    `${owner.kind} ${joinKey(namespace, name)} has reached the limit of ${maxClaims} IPAMClaims (controller flag --max-claims-per-vm): interface ` +
    `"${first.vmNetwork}"${which} gets no persistent addresses. Remove interfaces that are not needed, or raise the limit`;
  return [refuse(owner, { reason: EventReason.ClaimLimit, message }, observed)];
}

/** Assigns one claim to each interface. */
function assignClaims(
  byOwner: readonly OwnerClaims[],
  owned: readonly OwnedClaim[],
  { name }: ObservedWorkload,
): Map<OwnedClaim, DesiredClaim> {
  const assigned = new Map<OwnedClaim, DesiredClaim>();
  for (const { owner, claims } of byOwner) {
    const own = owned.filter((candidate) => candidate.owner.uid === owner.uid);
    const networkOf = new Map(own.map((candidate) => [candidate, networkServedBy(candidate, claims, name)]));
    for (const desired of claims) {
      const fitting = own
        .filter((candidate) => !assigned.has(candidate) && candidate.claim.spec.network === desired.network)
        .filter((candidate) => networkOf.get(candidate) === desired.vmNetwork);
      const picked = pickClaim(fitting.map(({ claim }) => claim));
      const best = fitting.find(({ claim }) => claim === picked);
      if (best !== undefined) assigned.set(best, desired);
    }
  }
  return assigned;
}

function networkServedBy({ claim }: OwnedClaim, claims: readonly DesiredClaim[], vm: string): string | undefined {
  const sameNetwork = claims.filter(({ network }) => network === claim.spec.network);
  const networks = sameNetwork.map(({ vmNetwork, podInterface }) => ({ name: vmNetwork, podInterface }));
  return servedVmNetwork(claim, vm, networks);
}

function planClaim(
  owned: OwnedClaim,
  desired: DesiredClaim | undefined,
  byOwner: readonly OwnerClaims[],
  observed: ObservedWorkload,
): Action {
  const { claim, owner, recordedOwnerUid, state } = owned;
  if (desired === undefined && !isManagedByHoldfast(claim)) {
    return { kind: 'keep', claim, reason: 'it names this owner, but Holdfast does not manage it' };
  }
  const set = changesTo(claim, owner, knownSettings(owned, desired, observed));
  if (owner.uid !== recordedOwnerUid && set !== undefined) {
    const reason = `its owner is ${owner.kind} ${owner.uid} now, not ${recordedOwnerUid}`;
    return { kind: 'update', claim, owner, set, reason };
  }
  if (isRestored(owned) && waitsForOwner(owned, observed)) return keepRestored(owned, observed);
  if (state !== 'alive') return releaseAfterOwner(owned, observed);
  if (desired === undefined) return releaseAfterUnplug(owned, byOwner, observed);
  if (isBeingDeleted(claim)) return releaseAfterUserDelete(owned, desired, observed);
  if (set !== undefined) {
    return { kind: 'update', claim, owner, set, reason: `it differs in ${Object.keys(set).join(', ')}` };
  }
  return { kind: 'keep', claim, reason: 'nothing to do' };
}

/** Undefined while NADs are not listed: then only the owner of a claim is kept up to date. */
function knownSettings(
  owned: OwnedClaim,
  desired: DesiredClaim | undefined,
  observed: ObservedWorkload,
): DesiredClaim | undefined {
  return desired && observed.areNetworksKnown ? markLateRequest(owned, desired, observed) : undefined;
}

/** Recognised by our finalizer, which kubevirt/ipam-extensions sets too, or by an annotation that only we write. */
function isManagedByHoldfast({ metadata: { finalizers, annotations } }: IPAMClaim): boolean {
  return finalizers?.includes(CLAIM_FINALIZER) === true || annotations?.[CLAIM_OWNER_UID] !== undefined;
}

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
