import { type IPAMClaim, isWorkloadClaim } from '../../../api/ipam-claim.js';
import { isBeingDeleted, joinKey, objectKey } from '../../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_REFERENCE_KEY, CLAIM_VM_NETWORK } from '../../../api/names.js';
import {
  type NetworkSelection,
  describeSelection,
  isDefaultNetwork,
  networkSelectionsOf,
} from '../../../api/networks/network-selection.js';
import { controllingVmi, isLauncher } from '../../../api/pod.js';
import { describeClaimOwner, isOwnedBy, possibleClaimNames } from '../../../api/vm-claims.js';
import type { ClusterView, Recheck } from '../../../cluster/cluster-view.js';
import { chooseClaim, matchNetwork } from '../../../cluster/element-claim.js';
import { OwnedClaims } from '../../../cluster/owned-claims.js';
import { type Workload, findWorkload } from '../../../cluster/workload.js';
import type { Attachment } from '../attachment.js';
import type { NodePod } from '../node-pods.js';

/** Which claim an interface may use. */
export type AuthorizationDecision =
  | { readonly kind: 'claim'; readonly claim: IPAMClaim }
  /** No claim: the interface gets its own addresses. */
  | { readonly kind: 'none' }
  | PendingDecision
  /** Refused until an object is changed. */
  | { readonly kind: 'refused'; readonly reason: string };

/** The claim cannot be used now. A retry may succeed. */
export interface PendingDecision {
  readonly kind: 'pending';
  readonly reason: string;
  /** Whether the reason is expected to end by itself soon, so that it is worth waiting. */
  readonly isOnItsWay?: boolean;
  /** Whether the claim will be created unless the namespace has opted out. */
  readonly isPredicted?: boolean;
}

/** The input of a decision. `addRecheck` collects the objects to read live before a refusal. */
interface AuthorizationInput {
  readonly view: ClusterView;
  readonly addRecheck: (recheck: Recheck) => void;
}

/**
 * Decides which claim an interface may use. Pure.
 * @returns also the objects that must have been read live before the decision counts
 */
export function decideClaim(
  attachment: Attachment,
  view: ClusterView,
): { readonly decision: AuthorizationDecision; readonly rechecks: readonly Recheck[] } {
  const rechecks: Recheck[] = [];
  const input = { view, addRecheck: (recheck: Recheck) => void rechecks.push(recheck) };
  return { decision: decide(attachment, input), rechecks };
}

function decide(attachment: Attachment, input: AuthorizationInput): AuthorizationDecision {
  if (isDefaultNetwork(attachment.selection)) return { kind: 'none' };
  const isControlled = controllingVmi(attachment.pod) !== undefined;
  return isControlled ? decideForLauncher(attachment, input) : decideForPod(attachment, input);
}

interface LauncherRequest extends Attachment {
  readonly workload: Workload;
  /** Name of the network in the VM's spec; undefined if the VM has no such interface. */
  readonly vmNetwork: string | undefined;
}

/**
 * Finds the claim of a launcher's interface. It searches by VM and network, because virt-controller removes references from running pods.
 * A reference counts only if it names a claim of the same VM and network.
 */
function decideForLauncher(request: Attachment, input: AuthorizationInput): AuthorizationDecision {
  const { pod, selection } = request;
  const { namespace } = pod.metadata;
  const found = findWorkload(pod, namespace, input);
  if (!found.found) return refused(`pod ${objectKey(pod)} ${found.reason}`);
  const { workload } = found;
  const claims = new OwnedClaims(workload, input.view);
  const choice = { ...input, workload, claims, requested: requestedInterfaces(pod) };
  const vmNetwork = matchNetwork(selection, choice)?.name;
  const launcher: LauncherRequest = { ...request, workload, vmNetwork };
  const chosen = chooseClaim(selection, validReference(launcher, input), choice);
  const name = chosen.kind === 'claim' ? chosen.name : undefined;
  const claim = name === undefined ? undefined : input.view.claim(name);
  if (claim === undefined) recheckClaims(launcher, input);
  if (chosen.kind === 'none') return decideWithoutClaim(launcher, chosen.why);
  // unknown: the runtime has read a NAD that is missing now, so the VM may have a claim
  if (chosen.kind !== 'claim') return { kind: 'pending', reason: chosen.reason };
  return (
    refuseForeignReference(launcher, chosen.name, input) ??
    (claim === undefined ? missingClaimDecision(launcher, chosen.name) : authorizeClaim(launcher, claim, input))
  );
}

function decideWithoutClaim({ pod, selection }: Attachment, why: string): AuthorizationDecision {
  const { claimReference } = selection;
  if (claimReference === undefined) return { kind: 'none' };
  return refused(`${describeReference(selection, pod)}, but there is no claim for it: ${why}; leave the key out`);
}

function missingClaimDecision({ pod, selection }: LauncherRequest, name: string): AuthorizationDecision {
  const key = joinKey(pod.metadata.namespace, name);
  const reason = `IPAMClaim ${key} of ${describeSelection(selection)} does not exist yet`;
  return { kind: 'pending', reason, isOnItsWay: true, isPredicted: true };
}

function authorizeClaim(launcher: LauncherRequest, claim: IPAMClaim, input: AuthorizationInput): AuthorizationDecision {
  if (!isOwnedBy(claim, launcher.workload.owner)) {
    input.addRecheck({ kind: 'claim', key: claim.metadata.name });
    const reason = `IPAMClaim ${objectKey(claim)} ${describeClaimOwner(claim, launcher.workload.owner)}: it is about to be adopted`;
    return { kind: 'pending', reason, isOnItsWay: true };
  }
  if (claim.spec.network === launcher.network) return { kind: 'claim', claim };
  return decideOnNetworkMismatch(launcher, claim, input);
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
    : refused(`${why}: restart the VM, or restore the network's name in its NAD`);
}

/** Refuses a reference to a claim of another owner. A reference to a missing claim is harmless. */
function refuseForeignReference(
  launcher: LauncherRequest,
  expected: string,
  input: AuthorizationInput,
): AuthorizationDecision | undefined {
  const { pod, selection, workload } = launcher;
  const { claimReference } = selection;
  if (claimReference === undefined || claimReference === expected) return undefined;
  const referred = input.view.claim(claimReference);
  if (referred !== undefined && isOwnedBy(referred, workload.owner)) return undefined;
  input.addRecheck({ kind: 'claim', key: claimReference });
  if (referred === undefined) return undefined;
  return refused(
    `${describeReference(selection, pod)}, which ${describeClaimOwner(referred)}, expected ${JSON.stringify(expected)}: ` +
      'leave the key out, the webhook sets it',
  );
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

/**
 * Authorizes a pod that no VMI controls. It may refer to a claim that does not belong to a VM (multi-net-spec 8). Tenants can write
 * references and the labels of launchers, so neither authorizes a pod to use the claim of a VM.
 */
function decideForPod(request: Attachment, input: AuthorizationInput): AuthorizationDecision {
  const { pod, selection } = request;
  if (isLauncher(pod)) {
    const found = findWorkload(pod, pod.metadata.namespace, input);
    if (!found.found) return refused(`pod ${objectKey(pod)} ${found.reason}`);
  }
  const { claimReference } = selection;
  if (claimReference === undefined) return { kind: 'none' };
  // such claims are neither prefetched nor protected by a policy, so every decision needs a live read
  input.addRecheck({ kind: 'claim', key: claimReference });
  const shown = describeReference(selection, pod);
  const claim = input.view.claim(claimReference);
  if (claim === undefined)
    return { kind: 'pending', reason: `${shown}, which does not exist: create it, or leave the key out` };
  if (isVmClaim(claim)) {
    return refused(
      `${shown}, which ${describeClaimOwner(claim)}: only the pods of its VM may use it; leave the key out, or ` +
        'name a claim without a VM',
    );
  }
  return checkClaimNetwork(request, claim, input) ?? checkClaimDeletion(shown, claim);
}

/** Whether the claim belongs to a VM. Claims that lost their owner are recognized by the finalizer. */
function isVmClaim(claim: IPAMClaim): boolean {
  return isWorkloadClaim(claim) || claim.metadata.finalizers?.includes(CLAIM_FINALIZER) === true;
}

/** Checks claim and NAD. @returns undefined if the claim is for the network and the NAD allows claims */
function checkClaimNetwork(
  { pod, selection, network }: Attachment,
  claim: IPAMClaim,
  input: AuthorizationInput,
): AuthorizationDecision | undefined {
  const shown = describeReference(selection, pod);
  if (claim.spec.network !== network) {
    const wanted = `the interface is attached to network "${network}"`;
    return refused(
      `${shown}, which is for network "${claim.spec.network}", but ${wanted}: name a claim for that network`,
    );
  }
  const key = joinKey(selection.nad.namespace, selection.nad.name);
  const config = input.view.network(key);
  if (config === undefined) input.addRecheck({ kind: 'network', key });
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

/** `"ipam-claim-reference" of network element 0 (net1 on a/blue) of pod a/p is "vm1.data"` */
function describeReference(selection: NetworkSelection, pod: NodePod): string {
  const given = JSON.stringify(selection.claimReference);
  return `"${CLAIM_REFERENCE_KEY}" of ${describeSelection(selection)} of pod ${objectKey(pod)} is ${given}`;
}
