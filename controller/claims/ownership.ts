import { type ClaimOwner, type IPAMClaim, isWorkloadClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { VIRTUAL_MACHINE_INSTANCE_KIND, VIRTUAL_MACHINE_KIND } from '../../api/names.js';
import { controllerOf, isBeingDeleted } from '../../api/meta.js';
import { type Pod, controllingVmi, isTerminal } from '../../api/pod.js';
import { mayUseClaim, refersTo } from './references.js';
import type { ObservedWorkload } from './observed-workload.js';
import type { ObservedVmi } from './owner-spec.js';

/** `gone`: nothing of that UID is seen. A VM that only its VMI speaks of lives as long as that VMI. */
export type OwnerState = 'alive' | 'deleting' | 'gone';

/** A claim of the workload, and whose it is. */
export interface OwnedClaim {
  claim: IPAMClaim;
  /** The owner it names, or the heir that shall be named. */
  owner: ClaimOwner;
  /** The UID that the claim names now. */
  recordedOwnerUid: string;
  state: OwnerState;
}

/** The claims that name a VM or VMI of the workload's name; others are foreign and never touched. */
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
  // a VMI whose own claim its VM cannot inherit any more
  return vmi.metadata.uid === uid ? 'deleting' : 'gone';
}

/**
 * True while something of the owner may use the claim's addresses: a VMI of its UID, or a launcher that runs. A launcher whose VMI
 * is gone counts, since its addresses are on the wire; what belongs to another VM does not, since the two would wait for each other.
 */
export function isInUse({ claim, owner, recordedOwnerUid }: OwnedClaim, observed: ObservedWorkload): boolean {
  const { vmi, launchers } = observed;
  const belongs =
    vmi !== undefined && [vmi.metadata.uid, vmi.owner.uid].some((uid) => uid === owner.uid || uid === recordedOwnerUid);
  if (belongs) return true;
  return launchers.some((pod) => {
    if (isTerminal(pod)) return false;
    if (controllingVmi(pod) === undefined) return refersTo(pod, claim);
    return !isLauncherOf(pod, vmi) || isOrphanUsing(pod, claim, observed);
  });
}

/** The launchers that run, of this owner or of a VMI that is gone. */
export function runningLaunchersOf(ownerUid: string, { vmi, launchers }: ObservedWorkload): Pod[] {
  return launchers.filter(
    (pod) => !isTerminal(pod) && (vmi === undefined || !isLauncherOf(pod, vmi) || vmi.owner.uid === ownerUid),
  );
}

function isLauncherOf(pod: Pod, vmi: ObservedVmi | undefined): boolean {
  return vmi !== undefined && controllingVmi(pod)?.uid === vmi.metadata.uid;
}

/** Who owns the claim of an owner that has handed its VMI on. */
function inheritingOwnerOf(claim: IPAMClaim, namedUid: string, observed: ObservedWorkload): ClaimOwner | undefined {
  const { vmi } = observed;
  if (vmi === undefined) return undefined;
  const { owner } = vmi;
  if (owner.uid === namedUid || stateOf(owner.uid, observed) !== 'alive') return undefined;
  // adopted by a VM, or seen before its VM was
  if (vmi.metadata.uid === namedUid) return owner;
  if (stateOf(namedUid, observed) !== 'gone') return undefined;
  const orphaned = observed.launchers.some(
    (pod) => !isTerminal(pod) && isLauncherOf(pod, vmi) && isOrphanUsing(pod, claim, observed),
  );
  return orphaned ? owner : undefined;
}

/**
 * True for a launcher of the VMI seen that uses a claim of a VM which has left that VMI behind (`--cascade=orphan`). A reference to the claim
 * proves it, since the webhook lets no launcher point at a foreign claim. So does, while no VM has adopted the VMI, the same
 * interface on a claim whose owner the garbage collector has taken away.
 */
function isOrphanUsing(pod: Pod, claim: IPAMClaim, observed: ObservedWorkload): boolean {
  const { vmi } = observed;
  if (vmi === undefined || !isLauncherOf(pod, vmi)) return false;
  const wasOrphaned = controllerOf(claim) === undefined;
  if (vmi.owner.kind === VIRTUAL_MACHINE_KIND) return wasOrphaned && refersTo(pod, claim);
  return refersTo(pod, claim) || (wasOrphaned && mayUseClaim(pod, claim, observed));
}

/** A claim that has lost its reference does not remember the kind: the VMI of that UID tells. Where there is none, the claim only ends. */
function ownerKindOf(claim: IPAMClaim, namedUid: string, { vmi }: ObservedWorkload): ClaimOwner['kind'] {
  const isVmi = controllerOf(claim)?.kind === VIRTUAL_MACHINE_INSTANCE_KIND || vmi?.metadata.uid === namedUid;
  return isVmi ? VIRTUAL_MACHINE_INSTANCE_KIND : VIRTUAL_MACHINE_KIND;
}
