import { claimNadOf } from '../../api/ipam-claim.js';
import { isBeingDeleted } from '../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_VM_NETWORK, ORPHAN_FINALIZER } from '../../api/names.js';
import { isTerminal } from '../../api/pod.js';
import { hasNoOwner } from '../../api/vm-claims.js';
import type { Action } from './action.js';
import { mayUseClaim, refersTo } from './references.js';
import { successorOf } from './claim-object.js';
import type { OwnerClaims } from './desired.js';
import type { DesiredClaim } from './desired-claim.js';
import type { ObservedWorkload } from './observed-workload.js';
import { type OwnedClaim, isInUse, runningLaunchersOf } from './ownership.js';

/** When a claim may go: each function says whether it goes or, for now, why not. */

/** The owner is being deleted, or gone. */
export function releaseAfterOwner(owned: OwnedClaim, observed: ObservedWorkload): Action {
  const { owner, state } = owned;
  const { vm } = observed;
  const subject = `${owner.kind} ${owner.uid} is ${state === 'gone' ? 'gone' : 'being deleted'}`;
  if (vm?.metadata.uid === owner.uid && vm.metadata.finalizers?.includes(ORPHAN_FINALIZER)) {
    return releaseOrWait(owned, `${subject}, but leaves its VMI behind`, subject);
  }
  const hold = isInUse(owned, observed) ? `${subject}, but a VMI or launcher of it is left` : undefined;
  return releaseOrWait(owned, hold, subject);
}

/** A user deleted it while its VM lives. */
export function releaseAfterUserDelete(owned: OwnedClaim, wanted: DesiredClaim, observed: ObservedWorkload): Action {
  const hold = isInUse(owned, observed) ? 'it is being deleted while its VM runs: it serves to the end' : undefined;
  return releaseOrWait(owned, hold, 'it was deleted while its VM lives: a successor follows', wanted);
}

/** The owner lives, but has no such interface any more. */
export function releaseAfterUnplug(
  owned: OwnedClaim,
  demands: readonly OwnerClaims[],
  observed: ObservedWorkload,
): Action {
  const { claim, owner } = owned;
  const vmNetwork = claim.metadata.annotations?.[CLAIM_VM_NETWORK];
  if (vmNetwork === undefined) return releaseUnknownInterface(owned, observed);
  const served = demands.some(
    (demand) => demand.owner.uid === owner.uid && demand.claims.some((wanted) => wanted.vmNetwork === vmNetwork),
  );
  const swapped = served || isOnOtherNetwork(owned, vmNetwork, observed);
  const carried = runningLaunchersOf(owner.uid, observed).some((pod) => mayUseClaim(pod, claim, observed));
  // what the VMI reports of a swapped interface is that of its other claim or network
  const plugged = carried || (!swapped && isReported(owned, vmNetwork, observed));
  const hold = plugged ? 'its interface is not wanted any more, but still plugged' : undefined;
  return releaseOrWait(
    owned,
    hold,
    swapped ? 'its interface has another claim or network now' : describeLoss(owned, vmNetwork, observed),
  );
}

/** An interface that is there loses a claim which was deleted, and gets no other. */
function describeLoss({ owner }: OwnedClaim, vmNetwork: string, { vm, vmi }: ObservedWorkload): string {
  const specs = [
    ...(vm?.metadata.uid === owner.uid ? [vm.spec] : []),
    ...(vmi?.owner.uid === owner.uid ? [vmi.spec] : []),
  ];
  const hasInterface = specs.some((spec) => spec.secondaryNetworks.get(vmNetwork)?.isUnplugRequested === false);
  return hasInterface
    ? 'it was deleted, and its network, namespace or feature gate allows no new one'
    : 'its interface is unplugged';
}

function isReported({ owner }: OwnedClaim, vmNetwork: string, { vmi }: ObservedWorkload): boolean {
  return vmi?.owner.uid === owner.uid && vmi.reported.some(({ name }) => name === vmNetwork);
}

function isOnOtherNetwork({ claim, owner }: OwnedClaim, vmNetwork: string, observed: ObservedWorkload): boolean {
  const { vmi, networks } = observed;
  const current = vmi?.owner.uid === owner.uid ? vmi.spec.secondaryNetworks.get(vmNetwork) : undefined;
  if (current === undefined) return false;
  const lookup = networks.get(current.nadKey);
  const network = lookup?.found && lookup.config.ok ? lookup.config.network.name : claim.spec.network;
  return current.nadKey !== claimNadOf(claim) || network !== claim.spec.network;
}

/** kubevirt/ipam-extensions made it, for an interface that is not ours to judge, as that of a primary network. */
function releaseUnknownInterface(owned: OwnedClaim, observed: ObservedWorkload): Action {
  const { claim } = owned;
  if (!isBeingDeleted(claim)) return { kind: 'keep', claim, reason: 'for which interface it was made is not known' };
  const hold = isInUse(owned, observed) ? 'it is being deleted while its VM runs' : undefined;
  return releaseOrWait(owned, hold, 'it was deleted');
}

/**
 * Claims that nobody is known to own and that a user deleted, with our finalizer on them: those that kubevirt/ipam-extensions made, whose owner was
 * taken away by `--cascade=orphan`.
 */
export function releaseOwnerless(observed: ObservedWorkload): Action[] {
  const running = observed.launchers.filter((pod) => !isTerminal(pod));
  return observed.claims
    .filter((claim) => hasNoOwner(claim) && isBeingDeleted(claim))
    .filter((claim) => claim.metadata.finalizers?.includes(CLAIM_FINALIZER))
    .map((claim) =>
      running.some((pod) => refersTo(pod, claim))
        ? waitAction(claim.metadata.name, 'it has no owner and is being deleted, but a launcher uses it')
        : { kind: 'release', claim, reason: 'it has no owner and was deleted' },
    );
}

/**
 * @param hold why the claim must stay for now
 * @param wanted where a successor shall follow
 */
function releaseOrWait(
  { claim, owner, state }: OwnedClaim,
  hold: string | undefined,
  why: string,
  wanted?: DesiredClaim,
): Action {
  if (hold !== undefined) return waitAction(claim.metadata.name, hold);
  if (isBeingDeleted(claim) && !claim.metadata.finalizers?.includes(CLAIM_FINALIZER)) {
    return waitAction(claim.metadata.name, `${why}; finalizers of others hold it`);
  }
  return {
    kind: 'release',
    claim,
    ...(state === 'alive' && { ownerLives: true }),
    ...(wanted !== undefined && { successor: successorOf(claim, owner, wanted) }),
    reason: why,
  };
}

function waitAction(claimName: string, reason: string): Action {
  return { kind: 'wait', claimName, reason };
}
