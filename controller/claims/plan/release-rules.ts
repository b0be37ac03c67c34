import { type ClaimOwner, claimNadOf } from '../../../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../../../api/meta.js';
import { EventReason } from '../../../api/event-reasons.js';
import { CLAIM_FINALIZER, CLAIM_VM_NETWORK, ORPHAN_FINALIZER } from '../../../api/names.js';
import { isTerminal } from '../../../api/pod.js';
import { hasNoOwner } from '../../../api/vm-claims.js';
import type { Action } from './action.js';
import { isForPodNetwork, mayUseClaim, refersTo } from './references.js';
import { successorOf } from './claim-object.js';
import type { OwnerClaims } from './desired.js';
import type { DesiredClaim } from './desired-claim.js';
import type { ObservedWorkload, OwnerSpec } from './observed-workload.js';
import { type OwnedClaim, isInUse, runningLaunchersOf, runningVmiOf } from './ownership.js';

/** Each rule decides whether a claim is released or why it has to stay for now. */

/** The owner is being deleted or gone. */
export function releaseAfterOwner(owned: OwnedClaim, observed: ObservedWorkload): Action {
  const { owner, state } = owned;
  const { vm } = observed;
  const subject = `${owner.kind} ${owner.name} is ${state === 'gone' ? 'gone' : 'being deleted'}`;
  if (vm?.metadata.uid === owner.uid && vm.metadata.finalizers?.includes(ORPHAN_FINALIZER)) {
    return releaseOrWait(owned, `${subject}, but orphans its VMI`, subject);
  }
  const keepReason = isInUse(owned, observed) ? `${subject}, but one of its VMIs or launchers still exists` : undefined;
  return releaseOrWait(owned, keepReason, subject);
}

/** A user deleted the claim of a living VM. */
export function releaseAfterUserDelete(owned: OwnedClaim, desired: DesiredClaim, observed: ObservedWorkload): Action {
  if (isInUse(owned, observed)) return keepDeleted(owned, 'A new claim then requests the same addresses');
  return releaseOrWait(
    owned,
    undefined,
    'it was deleted, but its VM still exists: the controller creates a new claim',
    desired,
  );
}

function keepDeleted({ claim, owner }: OwnedClaim, outlook: string): Action {
  const message =
    `IPAMClaim ${objectKey(claim)} was deleted, but ${owner.kind} ${owner.name} is running and keeps its addresses: ` +
    `the claim stays until it stops. ${outlook}`;
  const event = { reason: EventReason.ClaimInUse, message, regarding: { claimAndOwner: claim } };
  return { ...waitAction(claim.metadata.name, message), event };
}

/** The owner lives, but no longer has the interface. */
export function releaseAfterUnplug(
  owned: OwnedClaim,
  byOwner: readonly OwnerClaims[],
  observed: ObservedWorkload,
): Action {
  const { claim, owner } = owned;
  const vmNetwork = claim.metadata.annotations?.[CLAIM_VM_NETWORK];
  const isServed = byOwner.some(
    (each) => each.owner.uid === owner.uid && each.claims.some((desired) => desired.vmNetwork === vmNetwork),
  );
  // a claim of the pod network outlives its primary network and the feature gate, as other claims outlive their NAD
  const isUnserved = !isServed && specsOf(owner, observed).some((spec) => isForPodNetwork(claim, spec));
  if (vmNetwork === undefined || isUnserved) return releaseUnknownInterface(owned, observed);
  const isSwapped = isServed || isOnOtherNetwork(owned, vmNetwork, observed);
  const isUsed = runningLaunchersOf(owner.uid, observed).some((pod) => mayUseClaim(pod, claim, observed));
  // for a swapped interface, the VMI reports the interface of the other claim or network
  const isPlugged = isUsed || (!isSwapped && isReported(owned, vmNetwork, observed));
  const keepReason = isPlugged ? 'its interface was removed from the spec, but is still plugged in' : undefined;
  return releaseOrWait(
    owned,
    keepReason,
    isSwapped ? 'its interface has another claim or network now' : describeLoss(owned, vmNetwork, observed),
  );
}

function specsOf({ uid }: ClaimOwner, observed: ObservedWorkload): OwnerSpec[] {
  const { vm } = observed;
  const vmi = runningVmiOf(observed);
  return [...(vm?.metadata.uid === uid ? [vm.spec] : []), ...(vmi?.owner.uid === uid ? [vmi.spec] : [])];
}

/** An interface that still exists gets no new claim if a deleted claim may not be replaced. */
function describeLoss({ owner }: OwnedClaim, vmNetwork: string, observed: ObservedWorkload): string {
  const specs = specsOf(owner, observed);
  const hasInterface = specs.some((spec) => spec.servedNetworks.get(vmNetwork)?.isUnplugRequested === false);
  return hasInterface
    ? 'it was deleted, and its network, its namespace or the feature gate allows no new claim'
    : 'its interface is unplugged';
}

function isReported({ owner }: OwnedClaim, vmNetwork: string, observed: ObservedWorkload): boolean {
  const vmi = runningVmiOf(observed);
  return vmi?.owner.uid === owner.uid && vmi.reported.some(({ name }) => name === vmNetwork);
}

function isOnOtherNetwork({ claim, owner }: OwnedClaim, vmNetwork: string, observed: ObservedWorkload): boolean {
  const { networks } = observed;
  const vmi = runningVmiOf(observed);
  if (vmi?.owner.uid !== owner.uid) return false;
  const current = vmi.spec.servedNetworks.get(vmNetwork);
  // the name may be that of the pod network or of a device now
  if (current === undefined) return vmi.spec.networkNames.has(vmNetwork);
  const lookup = networks.get(current.nadKey);
  const network = lookup?.found && lookup.config.ok ? lookup.config.network.name : claim.spec.network;
  return current.nadKey !== claimNadOf(claim) || network !== claim.spec.network;
}

/** The claim is for an interface that Holdfast does not serve, such as that of a primary network while the feature gate is off. */
function releaseUnknownInterface(owned: OwnedClaim, observed: ObservedWorkload): Action {
  const { claim } = owned;
  if (!isBeingDeleted(claim)) return { kind: 'keep', claim, reason: 'Holdfast does not serve its interface' };
  if (isInUse(owned, observed)) return keepDeleted(owned, 'No claim replaces it');
  return releaseOrWait(owned, undefined, 'it was deleted');
}

/**
 * Releases claims without an owner that a user deleted and that have our finalizer. kubevirt/ipam-extensions created them, and
 * `--cascade=orphan` removed their owner.
 */
export function releaseOwnerless(observed: ObservedWorkload): Action[] {
  const running = observed.launchers.filter((pod) => !isTerminal(pod));
  return observed.claims
    .filter((claim) => hasNoOwner(claim) && isBeingDeleted(claim))
    .filter((claim) => claim.metadata.finalizers?.includes(CLAIM_FINALIZER))
    .map((claim) =>
      running.some((pod) => refersTo(pod, claim, observed))
        ? waitAction(claim.metadata.name, 'it has no owner and was deleted, but a launcher uses it')
        : { kind: 'release', claim, reason: 'it has no owner and was deleted' },
    );
}

/**
 * @param keepReason why the claim must stay for now
 * @param desired given if a successor should be created
 */
function releaseOrWait(
  { claim, owner, state }: OwnedClaim,
  keepReason: string | undefined,
  why: string,
  desired?: DesiredClaim,
): Action {
  if (keepReason !== undefined) return waitAction(claim.metadata.name, keepReason);
  if (isBeingDeleted(claim) && !claim.metadata.finalizers?.includes(CLAIM_FINALIZER)) {
    return waitAction(claim.metadata.name, `${why}, but other finalizers are left on it`);
  }
  return {
    kind: 'release',
    claim,
    ...(state === 'alive' && { isOwnerAlive: true }),
    ...(desired !== undefined && { successor: successorOf(claim, owner, desired) }),
    reason: why,
  };
}

function waitAction(claimName: string, reason: string): Extract<Action, { kind: 'wait' }> {
  return { kind: 'wait', claimName, reason };
}
