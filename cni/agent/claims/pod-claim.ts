import { type IPAMClaim, isWorkloadClaim } from '../../../api/ipam-claim.js';
import { isBeingDeleted, joinKey, objectKey } from '../../../api/meta.js';
import { CLAIM_FINALIZER } from '../../../api/names.js';
import { isLauncher } from '../../../api/pod.js';
import { describeClaimOwner } from '../../../api/vm-claims.js';
import { findWorkload } from '../../../cluster/workload.js';
import { describeReference } from './launcher-claim.js';
import type { AuthorizationDecision, AttachmentRequest, AuthorizationInput } from './authorization-decision.js';

/**
 * Authorizes a pod that no VMI controls. It may refer to a claim that does not belong to a VM (multi-net-spec 8). Tenants can write
 * references and the labels of launchers, so neither authorizes a pod to use the claim of a VM. Pure.
 */
export function authorizePod(request: AttachmentRequest, sight: AuthorizationInput): AuthorizationDecision {
  const { pod, selection } = request;
  if (isLauncher(pod)) {
    const found = findWorkload(pod, pod.metadata.namespace, sight);
    if (!found.found) return refused(`pod ${objectKey(pod)} ${found.reason}`);
  }
  const { claimReference } = selection;
  if (claimReference === undefined) return { kind: 'none' };
  // such claims are neither prefetched nor protected by a policy, so every decision needs a live read
  sight.addRecheck({ kind: 'claim', key: claimReference });
  const shown = describeReference(selection, pod);
  const claim = sight.view.claim(claimReference);
  if (claim === undefined)
    return { kind: 'pending', reason: `${shown}, which does not exist: create it, or leave the key out` };
  if (isVmClaim(claim)) {
    return refused(
      `${shown}, which ${describeClaimOwner(claim)}: only the pods of its VM may use it; leave the key out, or ` +
        'name a claim without a VM',
    );
  }
  return checkClaimNetwork(request, claim, sight) ?? checkClaimDeletion(shown, claim);
}

/** Whether the claim belongs to a VM. Claims that lost their owner are recognized by the finalizer. */
function isVmClaim(claim: IPAMClaim): boolean {
  return isWorkloadClaim(claim) || claim.metadata.finalizers?.includes(CLAIM_FINALIZER) === true;
}

/** Checks claim and NAD. @returns undefined if the claim is for the network and the NAD allows claims */
function checkClaimNetwork(
  { pod, selection, network }: AttachmentRequest,
  claim: IPAMClaim,
  sight: AuthorizationInput,
): AuthorizationDecision | undefined {
  const shown = describeReference(selection, pod);
  if (claim.spec.network !== network) {
    const wanted = `the interface is attached to network "${network}"`;
    return refused(
      `${shown}, which is for network "${claim.spec.network}", but ${wanted}: name a claim for that network`,
    );
  }
  const key = joinKey(selection.nad.namespace, selection.nad.name);
  const config = sight.view.network(key);
  if (config === undefined) sight.addRecheck({ kind: 'network', key });
  if (config?.ok !== true) {
    const why =
      config === undefined ? 'does not exist' : `is invalid: ${config.problem.field} ${config.problem.message}`;
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
    ? { kind: 'pending', reason: `${shown}, which is being deleted: name another claim, or recreate it` }
    : { kind: 'claim', claim };
}

function refused(reason: string): AuthorizationDecision {
  return { kind: 'refused', reason };
}
