import { claimName } from '../api/ipam-claim.js';
import { joinKey } from '../api/meta.js';
import { CLAIM_REFERENCE_KEY, DEFAULT_NETWORK_ANNOTATION } from '../api/names.js';
import { describeClaimOwner, ipamExtensionsClaimName, isForVmNetwork, isOwnedBy } from '../api/vm-claims.js';
import { type Workload, findWorkload } from '../cluster/workload.js';
import { readSelections, refuseUnreadable } from './networks-annotation.js';
import { type PodRefusal, type PodReview, type ReviewContext, describeReviewedPod } from './pod-decision.js';

/**
 * Refuses a new reference in the default network, unless it names the claim of the VM's pod network: on a primary user-defined network,
 * kubevirt/ipam-extensions and Holdfast write it.
 */
export function refuseDefaultNetwork(review: PodReview, context: ReviewContext): PodRefusal | undefined {
  const { pod, oldPod, namespace } = review;
  const value = pod.metadata.annotations?.[DEFAULT_NETWORK_ANNOTATION];
  if (value === undefined || value === oldPod?.metadata.annotations?.[DEFAULT_NETWORK_ANNOTATION]) return undefined;
  const selections = readSelections(value, namespace);
  if (typeof selections === 'string') return refuseUnreadable(DEFAULT_NETWORK_ANNOTATION, review, selections);
  for (const { claimReference } of selections) {
    const problem = claimReference === undefined ? undefined : findReferenceProblem(claimReference, review, context);
    if (problem === undefined) continue;
    const subject = `annotation ${DEFAULT_NETWORK_ANNOTATION} of ${describeReviewedPod(review)}`;
    const shown = `"${CLAIM_REFERENCE_KEY}" ${JSON.stringify(claimReference)}`;
    return { allowed: false, check: 'default-network', reason: `${subject} has ${shown}, ${problem}` };
  }
  return undefined;
}

/** Returns the rest of a sentence about the reference. */
function findReferenceProblem(reference: string, review: PodReview, context: ReviewContext): string | undefined {
  const { creator } = context;
  if (creator.kind !== 'trusted') return `but the pod gets no address of an IPAMClaim: ${creator.reason}`;
  const lookup = findWorkload(review.pod, review.namespace, context);
  if (!lookup.found) return `but the pod ${lookup.reason}`;
  const { workload } = lookup;
  const vmi = joinKey(workload.namespace, workload.vmi);
  if (workload.podNetwork === undefined) {
    return `but VirtualMachineInstance ${vmi} has no pod network: leave the key out`;
  }
  return findClaimProblem(reference, workload.podNetwork, workload, context);
}

function findClaimProblem(
  reference: string,
  podNetwork: string,
  { owner, namespace }: Workload,
  { view, addRecheck }: ReviewContext,
): string | undefined {
  const expected = claimName(owner.name, podNetwork);
  const seen = view.claim(reference);
  const isOwn = seen !== undefined && isOwnedBy(seen, owner) && isForVmNetwork(seen, owner.name, podNetwork);
  if (isOwn) return undefined;
  // no live read for any other name that a tenant wrote
  const isPossible = [expected, ipamExtensionsClaimName(owner.name, podNetwork)].includes(reference);
  if (isPossible) addRecheck({ kind: 'claim', key: reference });
  // a name that kubevirt/ipam-extensions alone gives could become that of another VM's claim
  if (seen === undefined && reference === expected) return undefined;
  if (seen !== undefined && isPossible && !isOwnedBy(seen, owner)) {
    return `but IPAMClaim ${joinKey(namespace, reference)} ${describeClaimOwner(seen, owner)}: the VM starts when that claim is gone`;
  }
  return `expected ${JSON.stringify(expected)}, the IPAMClaim of the pod network "${podNetwork}": leave the key out`;
}
