import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { joinKey, objectKey } from '../../../api/meta.js';
import { CLAIM_REFERENCE_KEY, CLAIM_VM_NETWORK } from '../../../api/names.js';
import { type NetworkSelection, describeSelection, networkSelectionsOf } from '../../../api/network-selection.js';
import { describeClaimOwner, isOwnedBy, possibleClaimNames } from '../../../api/vm-claims.js';
import { chooseClaim, matchNetwork } from '../../../cluster/element-claim.js';
import { OwnedClaims } from '../../../cluster/owned-claims.js';
import { type Workload, findWorkload } from '../../../cluster/workload.js';
import type { NodePod } from '../node-pods.js';
import type { AuthorizationDecision, AttachmentRequest, AuthorizationInput } from './authorization-decision.js';

interface LauncherRequest extends AttachmentRequest {
  readonly workload: Workload;
  /** Name of the network in the VM's spec; undefined if the VM has no such interface. */
  readonly vmNetwork: string | undefined;
}

/**
 * Finds the claim of a launcher's interface. It searches by VM and network, because virt-controller removes references from running pods.
 * A reference counts only if it names a claim of the same VM and network. Pure.
 */
export function authorizeLauncher(request: AttachmentRequest, sight: AuthorizationInput): AuthorizationDecision {
  const { pod, selection } = request;
  const { namespace } = pod.metadata;
  const found = findWorkload(pod, namespace, sight);
  if (!found.found) return { kind: 'refused', reason: `pod ${objectKey(pod)} ${found.reason}` };
  const { workload } = found;
  const claims = new OwnedClaims(workload, sight.view);
  const choice = { ...sight, workload, claims, requested: requestedInterfaces(pod) };
  const vmNetwork = matchNetwork(selection, choice)?.name;
  const launcher: LauncherRequest = { ...request, workload, vmNetwork };
  const chosen = chooseClaim(selection, validReference(launcher, sight), choice);
  const name = chosen.kind === 'claim' ? chosen.name : undefined;
  const claim = name === undefined ? undefined : sight.view.claim(name);
  if (claim === undefined) recheckClaims(launcher, sight);
  if (chosen.kind === 'none') return decideWithoutClaim(launcher, chosen.why);
  // unknown: the runtime has read a NAD that is missing now, so the VM may have a claim
  if (chosen.kind !== 'claim') return { kind: 'pending', reason: chosen.reason };
  return (
    refuseForeignReference(launcher, chosen.name, sight) ??
    (claim === undefined ? missingClaimDecision(launcher, chosen.name) : authorizeClaim(launcher, claim, sight))
  );
}

function decideWithoutClaim({ pod, selection }: AttachmentRequest, why: string): AuthorizationDecision {
  const { claimReference } = selection;
  if (claimReference === undefined) return { kind: 'none' };
  const reason = `${describeReference(selection, pod)}, but there is no claim for it: ${why}; leave the key out`;
  return { kind: 'refused', reason };
}

function missingClaimDecision({ pod, selection }: LauncherRequest, name: string): AuthorizationDecision {
  const key = joinKey(pod.metadata.namespace, name);
  const reason = `IPAMClaim ${key} of ${describeSelection(selection)} does not exist yet`;
  return { kind: 'pending', reason, isOnItsWay: true, isPredicted: true };
}

function authorizeClaim(launcher: LauncherRequest, claim: IPAMClaim, sight: AuthorizationInput): AuthorizationDecision {
  if (!isOwnedBy(claim, launcher.workload.owner)) {
    sight.addRecheck({ kind: 'claim', key: claim.metadata.name });
    const reason = `IPAMClaim ${objectKey(claim)} ${describeClaimOwner(claim, launcher.workload.owner)}: it is about to be adopted`;
    return { kind: 'pending', reason, isOnItsWay: true };
  }
  if (claim.spec.network === launcher.network) return { kind: 'claim', claim };
  return decideOnNetworkMismatch(launcher, claim, sight);
}

/** Decides if the claim is for another network: the NAD was changed after the runtime read it, or after the claim was created. */
function decideOnNetworkMismatch(
  { selection, network }: LauncherRequest,
  claim: IPAMClaim,
  { view, addRecheck }: AuthorizationInput,
): AuthorizationDecision {
  const nad = joinKey(selection.nad.namespace, selection.nad.name);
  addRecheck({ kind: 'network', key: nad });
  addRecheck({ kind: 'claim', key: claim.metadata.name });
  const config = view.network(nad);
  const isSwapped = config?.ok === true && config.network.name !== network;
  const why =
    `IPAMClaim ${objectKey(claim)} is for network "${claim.spec.network}", but ${describeSelection(selection)} is attached to ` +
    `network "${network}"`;
  return isSwapped
    ? { kind: 'pending', reason: `${why}, while its NAD names "${config.network.name}": the NAD was changed just now` }
    : { kind: 'refused', reason: `${why}: restart the VM, or restore the network's name in its NAD` };
}

/** Refuses a reference to a claim of another owner. A reference to a missing claim is harmless. */
function refuseForeignReference(
  launcher: LauncherRequest,
  expected: string,
  sight: AuthorizationInput,
): AuthorizationDecision | undefined {
  const { pod, selection, workload } = launcher;
  const { claimReference } = selection;
  if (claimReference === undefined || claimReference === expected) return undefined;
  const referred = sight.view.claim(claimReference);
  if (referred !== undefined && isOwnedBy(referred, workload.owner)) return undefined;
  sight.addRecheck({ kind: 'claim', key: claimReference });
  if (referred === undefined) return undefined;
  const reason =
    `${describeReference(selection, pod)}, which ${describeClaimOwner(referred)}, expected ${JSON.stringify(expected)}: ` +
    'leave the key out, the webhook sets it';
  return { kind: 'refused', reason };
}

/**
 * Returns the reference if it is valid. It decides between two claims for one network. A claim that Holdfast has not adopted does not count:
 * kubevirt/ipam-extensions creates it beside ours, and refers to it.
 */
function validReference(
  { selection, workload, vmNetwork, network }: LauncherRequest,
  { view }: AuthorizationInput,
): string | undefined {
  const { claimReference } = selection;
  if (claimReference === undefined || vmNetwork === undefined) return undefined;
  const claim = view.claim(claimReference);
  const isOwn =
    claim !== undefined &&
    isOwnedBy(claim, workload.owner) &&
    claim.metadata.annotations?.[CLAIM_VM_NETWORK] === vmNetwork &&
    claim.spec.network === network;
  return isOwn ? claimReference : undefined;
}

/** Requests live reads of all possible names before the decision that there is no claim. */
function recheckClaims({ selection, workload, vmNetwork, network }: LauncherRequest, input: AuthorizationInput): void {
  const { claimReference } = selection;
  const names = vmNetwork === undefined ? [] : possibleClaimNames(workload.owner.name, vmNetwork, network);
  for (const key of new Set([...names, ...(claimReference === undefined ? [] : [claimReference])])) {
    input.addRecheck({ kind: 'claim', key });
  }
}

/** Returns the interface names in the annotation, which was validated before. */
function requestedInterfaces(pod: NodePod): ReadonlySet<string | undefined> {
  return new Set(networkSelectionsOf(pod).map((selection) => selection.interface));
}

/** `"ipam-claim-reference" of network element 0 (net1 on a/blue) of pod a/p is "vm1.data"` */
export function describeReference(selection: NetworkSelection, pod: NodePod): string {
  const given = JSON.stringify(selection.claimReference);
  return `"${CLAIM_REFERENCE_KEY}" of ${describeSelection(selection)} of pod ${objectKey(pod)} is ${given}`;
}
