import { type IPAMClaim, isWorkloadClaim } from '../../../api/ipam-claim.js';
import { isBeingDeleted, joinKey, objectKey } from '../../../api/meta.js';
import { CLAIM_FINALIZER } from '../../../api/names.js';
import { isLauncher } from '../../../api/pod.js';
import { describeClaimOwner } from '../../../api/vm-claims.js';
import { findWorkload } from '../../../cluster/workload.js';
import { describeReference } from './launcher-claim.js';
import type { AuthorizationDecision, AttachmentRequest, AuthorizationInput } from './authorization-decision.js';

/**
 * A pod that no VMI controls has a claim where it refers to one that is no VM's (multi-net-spec 8). Anybody may write a reference, and the
 * labels of a launcher: neither gives a right to what is a VM's. Pure.
 */
export function authorizePod(seeker: AttachmentRequest, sight: AuthorizationInput): AuthorizationDecision {
  const { pod, selection } = seeker;
  if (isLauncher(pod)) {
    const found = findWorkload(pod, pod.metadata.namespace, sight);
    if (!found.found) return refused(`pod ${objectKey(pod)} ${found.reason}`);
  }
  const { claimReference } = selection;
  if (claimReference === undefined) return { kind: 'none' };
  // nothing is prefetched for such pods, and their claims are guarded by nobody: each look is a live one
  sight.doubt({ kind: 'claim', key: claimReference });
  const shown = describeReference(selection, pod);
  const claim = sight.view.claim(claimReference);
  if (claim === undefined)
    return { kind: 'pending', reason: `${shown}, which does not exist: create it, or leave the key out` };
  if (isVmClaim(claim)) {
    return refused(
      `${shown}, which ${describeClaimOwner(claim)}: only the pods of its VM may have its addresses; leave the key out, ` +
        'or name a claim that no VM has',
    );
  }
  return checkClaimNetwork(seeker, claim, sight) ?? checkClaimDeletion(shown, claim);
}

/** One that has lost its owner may still be known by what its maker wrote. */
function isVmClaim(claim: IPAMClaim): boolean {
  return isWorkloadClaim(claim) || claim.metadata.finalizers?.includes(CLAIM_FINALIZER) === true;
}

/** @returns undefined where the claim is for the network, and the network for claims */
function checkClaimNetwork(
  { pod, selection, network }: AttachmentRequest,
  claim: IPAMClaim,
  sight: AuthorizationInput,
): AuthorizationDecision | undefined {
  const shown = describeReference(selection, pod);
  if (claim.spec.network !== network) {
    const wanted = `the interface is attached to network "${network}"`;
    return refused(
      `${shown}, which is for network "${claim.spec.network}", but ${wanted}: name a claim that is for this one`,
    );
  }
  const key = joinKey(selection.nad.namespace, selection.nad.name);
  const config = sight.view.network(key);
  if (config === undefined) sight.doubt({ kind: 'network', key });
  if (config?.ok !== true) {
    const why = config === undefined ? 'is gone' : `cannot be used: ${config.problem.field} ${config.problem.message}`;
    return { kind: 'pending', reason: `${shown}, but NetworkAttachmentDefinition ${key} ${why}` };
  }
  if (config.network.allowPersistentIPs) return undefined;
  return refused(
    `${shown}, but NetworkAttachmentDefinition ${key} does not allow persistent addresses: set "allowPersistentIPs" there, ` +
      'or leave the key out',
  );
}

function checkClaimDeletion(shown: string, claim: IPAMClaim): AuthorizationDecision {
  return isBeingDeleted(claim)
    ? { kind: 'pending', reason: `${shown}, which is being deleted: name another claim, or create it anew` }
    : { kind: 'claim', claim };
}

function refused(reason: string): AuthorizationDecision {
  return { kind: 'refused', reason };
}
