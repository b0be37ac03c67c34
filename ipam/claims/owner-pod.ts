import { type IPAMClaim, isWorkloadClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import type { ClaimPod } from './claim-pods.js';
import type { ClaimObservation } from './observe.js';
import { type LauncherVmis, RECHECK_VMI_MS } from './vmi-owners.js';

/**
 * The name of the pod that has the claim's addresses, for `status.ownerPod`; undefined if there is none. A pod keeps them until it has ended or
 * is gone: in a migration the source. Then they go to one that runs, else to one that will; the oldest first. A launcher is chosen only if the
 * API server has shown that its VMI, by UID, is of the claim's owner; one that was chosen may outlive its VMI.
 * @param pods as {@link ClaimPods.usersOf} gives them: none has ended
 */
export function ownerPodOf(
  claim: IPAMClaim,
  pods: readonly ClaimPod[],
  { proven }: Pick<LauncherVmis, 'proven'>,
): string | undefined {
  const eligible = pods.filter((pod) => isEligible(pod, claim));
  const current = claim.status?.ownerPod?.name;
  if (eligible.some(({ metadata }) => metadata.name === current)) return current;
  const isVerified = ({ metadata }: ClaimPod) => !isWorkloadClaim(claim) || proven.has(metadata.uid ?? '');
  return eligible.filter((pod) => isVerified(pod) && mayOwnClaim(pod, claim)).sort(byPreference)[0]?.metadata.name;
}

/** The UIDs of the VMIs that must be read, because no pod can be chosen without. */
export function vmisToVerify(claim: IPAMClaim, pods: readonly ClaimPod[], vmis: LauncherVmis): readonly string[] {
  if (vmis.due.size === 0 || ownerPodOf(claim, pods, vmis) !== undefined) return [];
  return [...vmis.due];
}

/** After how many ms a claim is looked at again because of VMIs that proved nothing; 0: not because of them. */
export function vmiRecheckDelayMs(
  observed: Pick<ClaimObservation, 'claim' | 'pods' | 'launcherVmis'> | undefined,
): number {
  if (observed === undefined || observed.launcherVmis.unproven.size === 0) return 0;
  return ownerPodOf(observed.claim, observed.pods, observed.launcherVmis) === undefined ? RECHECK_VMI_MS : 0;
}

/** A VM's claim is for its launchers: anybody may write the name of a claim into a pod. */
function isEligible(pod: ClaimPod, claim: IPAMClaim): boolean {
  return !isWorkloadClaim(claim) || (pod.vmi !== undefined && pod.vmi.name === claimOwnerOf(claim)?.name);
}

/** A launcher without any reference was stripped of them; one that has others carries other claims. */
function mayOwnClaim({ claims }: ClaimPod, { metadata }: IPAMClaim): boolean {
  return claims.length === 0 || claims.includes(metadata.name);
}

function byPreference(a: ClaimPod, b: ClaimPod): number {
  return (
    Number(isLeaving(a)) - Number(isLeaving(b)) ||
    Number(b.isRunning === true) - Number(a.isRunning === true) ||
    createdAt(a) - createdAt(b) ||
    (a.metadata.name < b.metadata.name ? -1 : 1)
  );
}

function isLeaving({ metadata }: ClaimPod): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function createdAt({ metadata }: ClaimPod): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0;
}
