import { type IPAMClaim, isWorkloadClaim, ownerOf } from '../../api/ipam-claim.js';
import type { ClaimPod } from './pods.js';
import type { Observed } from './observe.js';
import { type NamedVmis, RECHECK_VMI_MS } from './vmi-owners.js';

/**
 * The name of the pod that has the claim's addresses, for `status.ownerPod`; undefined if there is none. A pod keeps them until it has ended or
 * is gone: in a migration the source. Then they go to one that runs, else to one that will; the oldest first. A launcher is chosen only if the
 * API server has shown that its VMI, by UID, is of the claim's owner; one that was chosen may outlive its VMI.
 * @param users as {@link ClaimPods.usersOf} gives them: none has ended
 */
export function ownerPodOf(
  claim: IPAMClaim,
  users: readonly ClaimPod[],
  { proven }: Pick<NamedVmis, 'proven'>,
): string | undefined {
  const entitled = users.filter((pod) => isEntitled(pod, claim));
  const current = claim.status?.ownerPod?.name;
  if (entitled.some(({ metadata }) => metadata.name === current)) return current;
  const isProven = ({ metadata }: ClaimPod) => !isWorkloadClaim(claim) || proven.has(metadata.uid ?? '');
  return entitled.filter((pod) => isProven(pod) && mayCarry(pod, claim)).sort(byRank)[0]?.metadata.name;
}

/** The UIDs of the VMIs that must be read, because no pod can be chosen without. */
export function unprovenVmis(claim: IPAMClaim, users: readonly ClaimPod[], vmis: NamedVmis): readonly string[] {
  if (vmis.due.size === 0 || ownerPodOf(claim, users, vmis) !== undefined) return [];
  return [...vmis.due];
}

/** After how many ms a claim is looked at again because of VMIs that proved nothing; 0: not because of them. */
export function recheckVmiMs(observed: Pick<Observed, 'claim' | 'users' | 'vmis'> | undefined): number {
  if (observed === undefined || observed.vmis.unproven.size === 0) return 0;
  return ownerPodOf(observed.claim, observed.users, observed.vmis) === undefined ? RECHECK_VMI_MS : 0;
}

/** A VM's claim is for its launchers: anybody may write the name of a claim into a pod. */
function isEntitled(pod: ClaimPod, claim: IPAMClaim): boolean {
  return !isWorkloadClaim(claim) || (pod.vmi !== undefined && pod.vmi.name === ownerOf(claim)?.name);
}

/** A launcher without any reference was stripped of them; one that has others carries other claims. */
function mayCarry({ claims }: ClaimPod, { metadata }: IPAMClaim): boolean {
  return claims.length === 0 || claims.includes(metadata.name);
}

function byRank(a: ClaimPod, b: ClaimPod): number {
  return (
    Number(isLeaving(a)) - Number(isLeaving(b)) ||
    Number(b.running === true) - Number(a.running === true) ||
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
