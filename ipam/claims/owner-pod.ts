import { type IPAMClaim, isWorkloadClaim, ownerOf } from '../../api/ipam-claim.js';
import type { ClaimPod } from './pods.js';

/**
 * The name of the pod that has the claim's addresses, for `status.ownerPod`; undefined where there is none. Whoever has them keeps them
 * until it has ended or is gone: in a migration the source. Then they go to one that runs, else to one that will; the oldest first.
 * @param users as {@link ClaimPods.usersOf} gives them: none has ended
 */
export function ownerPodOf(claim: IPAMClaim, users: readonly ClaimPod[]): string | undefined {
  const entitled = users.filter((pod) => isEntitled(pod, claim));
  const current = claim.status?.ownerPod?.name;
  if (entitled.some(({ metadata }) => metadata.name === current)) return current;
  return entitled.filter((pod) => mayCarry(pod, claim)).sort(byRank)[0]?.metadata.name;
}

/** A VM's claim is for its launchers: anybody may write the name of a claim into a pod. */
function isEntitled(pod: ClaimPod, claim: IPAMClaim): boolean {
  return !isWorkloadClaim(claim) || (pod.vmi !== undefined && pod.vmi === ownerOf(claim)?.name);
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
