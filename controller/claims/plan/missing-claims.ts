import { type ClaimOwner, type IPAMClaim, claimName, swappedClaimName } from '../../../api/ipam-claim.js';
import { describeValue } from '../../../api/json.js';
import { controllerOf, joinKey } from '../../../api/meta.js';
import { EventReason } from '../../../api/event-reasons.js';
import { VIRTUAL_MACHINE_KIND } from '../../../api/names.js';
import { describeClaimOwner, isAdoptable, isForVmNetwork } from '../../../api/vm-claims.js';
import type { Action, WorkloadEvent } from './action.js';
import { requestsClaim } from './references.js';
import { newClaim } from './claim-object.js';
import type { DesiredClaim } from './desired-claim.js';
import type { ObservedWorkload } from './observed-workload.js';
import { type OwnedClaim, isInUse, runningLaunchersOf } from './ownership.js';
import { adoptRestored, adoptionOf, isRestored, replaceRestored } from './restored-claims.js';

/** An interface without a claim. */
interface MissingClaim {
  /** The owner that the claim should have. */
  newOwner: ClaimOwner;
  desired: DesiredClaim;
  observed: ObservedWorkload;
  owned: readonly OwnedClaim[];
  /** Claim names that this plan has assigned already. */
  usedNames: Set<string>;
}

/** Creates the claim, adopts a claim that was restored or has no owner, or explains who holds the claim's name. */
export function planMissingClaim(missing: MissingClaim): Action {
  const { newOwner, desired, owned, usedNames } = missing;
  const { name, firstNameHolder } = chooseName(missing);
  if (desired.request?.kind === 'invalid') return { kind: 'wait', claimName: name, reason: desired.request.problem };
  if (usedNames.has(name)) {
    return { kind: 'wait', claimName: name, reason: 'another claim of this name is created first' };
  }
  const predecessors = owned.filter((other) => isPredecessor(other, missing));
  const blocker = predecessors.find((other) => !isFree(other, missing));
  usedNames.add(name);
  if (blocker !== undefined) return waitForOther(blocker, missing);
  const [restored] = predecessors;
  if (restored !== undefined) {
    usedNames.add(restored.claim.metadata.name);
    return adoptRestored(restored, newOwner, desired);
  }
  return planClaimOfName(name, firstNameHolder, missing);
}

function planClaimOfName(name: string, firstNameHolder: IPAMClaim | undefined, missing: MissingClaim): Action {
  const { newOwner, desired, observed, owned } = missing;
  const { namespace } = observed;
  const found = findClaim(name, observed);
  if (found === undefined) {
    const claim = newClaim({ namespace, name }, newOwner, desired);
    const reason = `interface ${desired.vmNetwork} needs persistent addresses`;
    return { kind: 'create', claim, ...(firstNameHolder !== undefined && { firstNameHolder }), reason };
  }
  if (isAdoptable(found, desired.network)) {
    const set = adoptionOf(found, newOwner, desired);
    return { kind: 'update', claim: found, owner: newOwner, set, reason: 'it has no owner: the interface adopts it' };
  }
  const other = owned.find(({ claim }) => claim === found);
  if (other === undefined) return refuseForeign(found, missing);
  // the claim of this name is for another network, so the interface can never adopt it
  return isRestored(other) && !isInUse(other, observed)
    ? replaceRestored(other, newOwner, desired, regardingKind(newOwner, observed))
    : waitForOther(other, missing);
}

function findClaim(name: string, { claims }: ObservedWorkload): IPAMClaim | undefined {
  return claims.find(({ metadata }) => metadata.name === name);
}

/** Returns true for a restored claim that nothing uses and that this plan gives to no other interface. */
function isFree(other: OwnedClaim, { observed, usedNames }: MissingClaim): boolean {
  return isRestored(other) && !isInUse(other, observed) && !usedNames.has(other.claim.metadata.name);
}

/** Returns true for a claim of another owner, under any name, that this interface may still inherit. */
function isPredecessor({ claim, owner, state }: OwnedClaim, { newOwner, desired, observed }: MissingClaim): boolean {
  return (
    (state !== 'alive' || isAdoptionPending(observed)) &&
    owner.uid !== newOwner.uid &&
    claim.spec.network === desired.network &&
    isForVmNetwork(claim, observed.name, desired.vmNetwork)
  );
}

/** Returns the object on which a user looks for events about the owner. */
export function regardingKind(owner: Pick<ClaimOwner, 'uid'>, { vm }: ObservedWorkload): WorkloadEvent['regarding'] {
  return vm?.metadata.uid === owner.uid ? 'vm' : 'vmi';
}

/**
 * Returns the first name. It returns the second one if a claim of the same interface on another network holds the first, or if a running launcher
 * waits for the second. It also does so if only the second is the name of a claim to adopt. Only observed objects decide: a wrong guess that a name
 * is in use would give one interface two claims.
 */
function chooseName({ newOwner, desired, observed, owned }: MissingClaim): {
  name: string;
  firstNameHolder?: IPAMClaim;
} {
  const { vmNetwork, network } = desired;
  const first = claimName(observed.name, vmNetwork);
  const second = swappedClaimName(observed.name, vmNetwork, network);
  const other = owned.find(
    ({ claim, owner }) =>
      claim.metadata.name === first &&
      owner.uid === newOwner.uid &&
      claim.spec.network !== network &&
      isForVmNetwork(claim, observed.name, vmNetwork),
  );
  if (other !== undefined) return { name: second, firstNameHolder: other.claim };
  const isRequested = runningLaunchersOf(newOwner.uid, observed).some((pod) => requestsClaim(pod, second, desired));
  if (isRequested) return { name: second };
  const [isFirst, isSecond] = [first, second].map((name) => isAdoptable(findClaim(name, observed), network));
  return { name: isSecond && !isFirst ? second : first };
}

/** Another claim of this workload has the name. Its own rules decide when it is released or inherited. */
function waitForOther({ claim, owner, state }: OwnedClaim, { newOwner, desired, observed }: MissingClaim): Action {
  const { name } = claim.metadata;
  const holder = `${owner.kind} ${owner.name}`;
  if (owner.uid === newOwner.uid) {
    return { kind: 'wait', claimName: name, reason: 'an earlier claim of this owner has the name' };
  }
  if (state !== 'alive') {
    const message =
      `IPAMClaim ${joinKey(observed.namespace, name)} belongs to the previous ${holder}. ` +
      `Interface "${desired.vmNetwork}" gets its own claim when that claim is deleted`;
    const event: WorkloadEvent = {
      reason: EventReason.PredecessorClaim,
      message,
      regarding: regardingKind(newOwner, observed),
    };
    return { kind: 'wait', claimName: name, reason: message, event };
  }
  if (newOwner.kind === VIRTUAL_MACHINE_KIND && isAdoptionPending(observed)) {
    return { kind: 'wait', claimName: name, reason: `it belongs to ${holder}, which this VM has not adopted yet` };
  }
  return refuseForeign(claim, { newOwner, desired, observed });
}

/** Returns true if there are a VM and a VMI without a controller: the VM will adopt the VMI, or has just orphaned it. */
function isAdoptionPending({ vm, vmi }: ObservedWorkload): boolean {
  return vm !== undefined && vmi !== undefined && controllerOf(vmi) === undefined;
}

function refuseForeign(
  claim: IPAMClaim,
  { newOwner, desired, observed }: Pick<MissingClaim, 'newOwner' | 'desired' | 'observed'>,
): Action {
  const { name } = claim.metadata;
  const message =
    `IPAMClaim ${joinKey(observed.namespace, name)} ${describeClaimOwner(claim, newOwner)}; delete it, or rename interface ` +
    `"${desired.vmNetwork}": the VM gets no persistent addresses on network ${describeValue(desired.network)} while that claim exists`;
  const event: WorkloadEvent = {
    reason: EventReason.ForeignClaim,
    message,
    regarding: regardingKind(newOwner, observed),
  };
  return { kind: 'refuse', reason: message, event, blockedBy: name };
}
