import { type ClaimOwner, type IPAMClaim, isWorkloadClaim, claimOwnerOf } from '../../../api/ipam-claim.js';
import { VIRTUAL_MACHINE_INSTANCE_KIND, VIRTUAL_MACHINE_KIND } from '../../../api/names.js';
import { controllerOf, isBeingDeleted } from '../../../api/meta.js';
import { type Pod, controllingVmi, isTerminal } from '../../../api/pod.js';
import { mayUseClaim, refersTo } from './references.js';
import type { ObservedVmi, ObservedWorkload } from './observed-workload.js';

/** `gone`: no object of that UID is observed. A VM that only its VMI names is alive as long as that VMI. */
type OwnerState = 'alive' | 'deleting' | 'gone';

/** A claim of the workload and its owner. */
export interface OwnedClaim {
  claim: IPAMClaim;
  /** The owner that the claim names, or the one that inherits it. */
  owner: ClaimOwner;
  /** The UID that the claim names. */
  recordedOwnerUid: string;
  state: OwnerState;
}

/** Returns the claims that name a VM or VMI of the workload's name. Others are foreign and never changed. */
export function ownedClaims(observed: ObservedWorkload): OwnedClaim[] {
  const owned: OwnedClaim[] = [];
  for (const claim of observed.claims) {
    const named = claimOwnerOf(claim);
    if (named?.name !== observed.name || !isWorkloadClaim(claim)) continue;
    const owner = inheritingOwnerOf(claim, named.uid, observed) ?? {
      kind: ownerKindOf(claim, named.uid, observed),
      ...named,
    };
    owned.push({ claim, owner, recordedOwnerUid: named.uid, state: stateOf(owner.uid, observed) });
  }
  return owned;
}

function stateOf(uid: string, { vm, vmi }: ObservedWorkload): OwnerState {
  if (vm?.metadata.uid === uid) return isBeingDeleted(vm) ? 'deleting' : 'alive';
  if (vmi === undefined) return 'gone';
  if (vmi.owner.uid === uid) return isBeingDeleted(vmi) ? 'deleting' : 'alive';
  // the VM can no longer inherit the VMI's own claim
  return vmi.metadata.uid === uid ? 'deleting' : 'gone';
}

/**
 * Returns true while a VMI of the owner's UID, or a running launcher, may use the claim's addresses. A launcher whose VMI is gone counts because it
 * still has the addresses. One of another VM does not, because the two VMs would wait for each other.
 */
export function isInUse({ claim, owner, recordedOwnerUid }: OwnedClaim, observed: ObservedWorkload): boolean {
  const vmi = runningVmiOf(observed);
  const belongs =
    vmi !== undefined && [vmi.metadata.uid, vmi.owner.uid].some((uid) => uid === owner.uid || uid === recordedOwnerUid);
  return belongs || isUsedByStranger(claim, observed) || isUsedByOrphan(claim, observed);
}

/**
 * Returns the VMI, unless its guest has ended and none of its launchers runs. KubeVirt keeps such a VMI although it shows the VM as stopped
 * (as with runStrategy Manual). A VMI without a VM, or whose VM is being deleted, counts until it is gone.
 */
export function runningVmiOf({ vm, vmi, launchers }: ObservedWorkload): ObservedVmi | undefined {
  if (vmi?.hasEnded !== true || vm?.metadata.uid !== vmi.owner.uid || isBeingDeleted(vm)) return vmi;
  return launchers.some((pod) => !isTerminal(pod) && isLauncherOf(pod, vmi)) ? vmi : undefined;
}

/** A running launcher whose VMI is gone, or that lost its owner reference to the VMI, may use the claim. */
function isUsedByStranger(claim: IPAMClaim, observed: ObservedWorkload): boolean {
  return observed.launchers.some((pod) => {
    if (isTerminal(pod) || isLauncherOf(pod, observed.vmi)) return false;
    return controllingVmi(pod) !== undefined || refersTo(pod, claim, observed);
  });
}

/** Returns the running launchers of this owner and of VMIs that are gone. */
export function runningLaunchersOf(ownerUid: string, { vmi, launchers }: ObservedWorkload): Pod[] {
  return launchers.filter(
    (pod) => !isTerminal(pod) && (vmi === undefined || !isLauncherOf(pod, vmi) || vmi.owner.uid === ownerUid),
  );
}

function isLauncherOf(pod: Pod, vmi: ObservedVmi | undefined): boolean {
  return vmi !== undefined && controllingVmi(pod)?.uid === vmi.metadata.uid;
}

/** Returns the new owner of a claim if its owner's VMI was adopted or orphaned. */
function inheritingOwnerOf(claim: IPAMClaim, namedUid: string, observed: ObservedWorkload): ClaimOwner | undefined {
  const { vmi } = observed;
  if (vmi === undefined) return undefined;
  const { owner } = vmi;
  if (owner.uid === namedUid || stateOf(owner.uid, observed) !== 'alive') return undefined;
  // a VM adopted it, or it was observed before its VM
  if (vmi.metadata.uid === namedUid) return owner;
  if (stateOf(namedUid, observed) !== 'gone') return undefined;
  // a new VMI has the same interface as a deleted one, whose launcher still has the addresses
  return isUsedByOrphan(claim, observed) && !isUsedByStranger(claim, observed) ? owner : undefined;
}

/**
 * Returns true if a running launcher of the observed VMI uses a claim of a VM which orphaned that VMI (`--cascade=orphan`). A reference to the claim
 * proves it because the webhook lets no launcher refer to a foreign claim. While no VM has adopted the VMI, so does the same interface on a claim
 * whose owner reference the garbage collector removed.
 */
function isUsedByOrphan(claim: IPAMClaim, observed: ObservedWorkload): boolean {
  const { vmi, launchers } = observed;
  if (vmi === undefined) return false;
  const wasOrphaned = controllerOf(claim) === undefined;
  const isOfVm = vmi.owner.kind === VIRTUAL_MACHINE_KIND;
  return launchers.some((pod) => {
    if (isTerminal(pod) || !isLauncherOf(pod, vmi)) return false;
    const refers = refersTo(pod, claim, observed);
    if (isOfVm) return wasOrphaned && refers;
    return refers || (wasOrphaned && mayUseClaim(pod, claim, observed));
  });
}

/** A claim without an owner reference does not record the kind. If no VMI has its UID, the claim can only be released. */
function ownerKindOf(claim: IPAMClaim, namedUid: string, { vmi }: ObservedWorkload): ClaimOwner['kind'] {
  const isVmi = controllerOf(claim)?.kind === VIRTUAL_MACHINE_INSTANCE_KIND || vmi?.metadata.uid === namedUid;
  return isVmi ? VIRTUAL_MACHINE_INSTANCE_KIND : VIRTUAL_MACHINE_KIND;
}
