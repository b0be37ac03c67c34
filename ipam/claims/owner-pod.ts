import { type IPAMClaim, isWorkloadClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { isBeingDeleted } from '../../api/meta.js';
import type { ClaimPod } from './running/claim-pods.js';
import type { ClaimObservation } from './observe.js';
import { type LauncherVmis, RECHECK_VMI_MS } from './running/vmi-owners.js';

/**
 * Returns the name of the pod that has the claim's addresses, for `status.ownerPod`, or undefined. A pod keeps them until it ends or is gone; in a migration that
 * is the source. Then a running pod is preferred to one that has not started, also while it is being deleted, and the oldest of several. A launcher is chosen only after a live read has shown
 * that its VMI (by UID) belongs to the claim's owner. A pod that was chosen may outlive its VMI.
 * @param pods as {@link ClaimPods.podsOf} returns them: none has ended
 */
export function ownerPodOf(
  claim: IPAMClaim,
  pods: readonly ClaimPod[],
  { verifiedPods }: Pick<LauncherVmis, 'verifiedPods'>,
): string | undefined {
  const eligible = pods.filter((pod) => isEligible(pod, claim));
  const current = claim.status?.ownerPod?.name;
  if (eligible.some(({ metadata }) => metadata.name === current)) return current;
  const isVerified = ({ metadata }: ClaimPod) => !isWorkloadClaim(claim) || verifiedPods.has(metadata.uid ?? '');
  return eligible.filter((pod) => isVerified(pod) && mayOwnClaim(pod, claim)).sort(byPreference)[0]?.metadata.name;
}

/**
 * Returns whether the pod that the status names must be read: the caches may lack it without proving that it has ended. A pod has lost the label by which it is
 * watched, or its namespace has, or the watch of the namespace has not listed yet.
 */
export function mustReadOwner(claim: IPAMClaim, pods: readonly ClaimPod[], readOwner: string | undefined): boolean {
  const named = claim.status?.ownerPod?.name;
  return named !== undefined && named !== readOwner && !pods.some(({ metadata }) => metadata.name === named);
}

/** UIDs of the VMIs that must be read before a pod can be chosen. */
export function vmisToVerify(claim: IPAMClaim, pods: readonly ClaimPod[], vmis: LauncherVmis): readonly string[] {
  if (vmis.vmisToRead.size === 0 || ownerPodOf(claim, pods, vmis) !== undefined) return [];
  return [...vmis.vmisToRead];
}

/** Milliseconds until the claim is synced again because the VMIs of its launchers are unverified; 0 if it need not be. */
export function vmiRecheckDelayMs(
  observed: Pick<ClaimObservation, 'claim' | 'pods' | 'launcherVmis'> | undefined,
): number {
  if (observed === undefined || observed.launcherVmis.unverifiedVmis.size === 0) return 0;
  return ownerPodOf(observed.claim, observed.pods, observed.launcherVmis) === undefined ? RECHECK_VMI_MS : 0;
}

/** A VM's claim is for its launchers only, because any user can write a claim's name into a pod. */
function isEligible(pod: ClaimPod, claim: IPAMClaim): boolean {
  return !isWorkloadClaim(claim) || (pod.vmi !== undefined && pod.vmi.name === claimOwnerOf(claim)?.name);
}

/** virt-controller may have removed all references of a launcher. If it has references to other claims only, it does not use this one. */
function mayOwnClaim({ claims }: ClaimPod, { metadata }: IPAMClaim): boolean {
  return claims.length === 0 || claims.includes(metadata.name);
}

function byPreference(a: ClaimPod, b: ClaimPod): number {
  return (
    // agents on other nodes know only by the owner pod that a launcher still has the addresses
    Number(b.isRunning === true) - Number(a.isRunning === true) ||
    Number(isBeingDeleted(a)) - Number(isBeingDeleted(b)) ||
    createdAt(a) - createdAt(b) ||
    (a.metadata.name < b.metadata.name ? -1 : 1)
  );
}

function createdAt({ metadata }: ClaimPod): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0;
}
