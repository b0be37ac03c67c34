import { CLAIM_REFERENCE_KEY, LAUNCHER_CREATOR, NETWORKS_ANNOTATION } from '../api/names.js';
import { type NetworkSelection, describeSelection, withClaimReferences } from '../api/networks/network-selection.js';
import { type Pod, isLauncher } from '../api/pod.js';
import { ipamExtensionsClaimName } from '../api/vm-claims.js';
import type { ClusterView, Recheck } from '../cluster/cluster-view.js';
import { type ElementClaim, chooseClaim } from '../cluster/element-claim.js';
import { OwnedClaims } from '../cluster/owned-claims.js';
import { type Workload, findWorkload } from '../cluster/workload.js';
import { refuseDefaultNetwork } from './default-network.js';
import {
  annotationPath,
  currentReferences,
  networksOf,
  readSelections,
  refuseUnreadable,
} from './networks-annotation.js';
import {
  type CreatorCheck,
  type PodAdmission,
  type PodCheck,
  type PodDecision,
  type PodRefusal,
  type PodReview,
  type ReviewContext,
  UNCHANGED,
  checkCreator,
  describeReviewedPod,
} from './pod-decision.js';

const PATCH_PATH = annotationPath(NETWORKS_ANNOTATION);

const CREATOR_PATH = annotationPath(LAUNCHER_CREATOR);

/**
 * Decides to which claims the network elements of a launcher pod refer, or why the pod is refused. Pure: the same input gives the same bytes. A
 * patched pod is not changed again.
 */
export function reviewPod(review: PodReview, view: ClusterView): PodDecision {
  const rechecks: Recheck[] = [];
  const outcome = decide(review, view, (recheck) => rechecks.push(recheck));
  return { ...outcome, rechecks };
}

function decide(review: PodReview, view: ClusterView, addRecheck: (one: Recheck) => void): PodAdmission | PodRefusal {
  const oldPod = previousLauncher(review);
  if (!isLauncher(review.pod) && oldPod === undefined) return UNCHANGED;
  const creator = checkCreator(review.pod, oldPod, review.requester);
  if (creator.kind === 'refused') {
    return { allowed: false, check: 'created-by-kubevirt', reason: `${describeReviewedPod(review)} ${creator.reason}` };
  }
  const context = { view, addRecheck, creator };
  const outcome =
    refuseDefaultNetwork({ ...review, oldPod }, context) ?? decideNetworks({ ...review, oldPod }, context);
  return outcome.allowed && creator.kind === 'unverified' ? recordCreator(outcome, creator) : outcome;
}

/** Only launchers with networks, and so with annotations, have a creator to record. */
function recordCreator(outcome: PodAdmission, creator: Extract<CreatorCheck, { kind: 'unverified' }>): PodAdmission {
  const warnings = [...outcome.warnings, `the pod gets no address of an IPAMClaim: ${creator.reason}`];
  const marked = creator.mark === undefined ? [] : [{ op: 'add' as const, path: CREATOR_PATH, value: creator.mark }];
  return { ...outcome, patch: [...outcome.patch, ...marked], warnings };
}

function decideNetworks(review: PodReview, { view, addRecheck, creator }: ReviewContext): PodAdmission | PodRefusal {
  const { pod, oldPod, namespace } = review;
  const value = networksOf(pod);
  if (value === undefined || value === (oldPod && networksOf(oldPod))) return UNCHANGED;

  const selections = readSelections(value, namespace);
  if (typeof selections === 'string') return refuseUnreadable(NETWORKS_ANNOTATION, review, selections);
  const referenceOf = currentReferences(oldPod, namespace);
  const found = findWorkload(pod, namespace, { view, addRecheck });
  if (!found.found) {
    // a pod that outlives its VMI may be changed, but gets no new reference
    const hasNoNewReference = selections.every(
      (each) => each.claimReference === undefined || each.claimReference === referenceOf(each),
    );
    if (review.operation === 'UPDATE' && hasNoNewReference) return UNCHANGED;
    return { allowed: false, check: found.check, reason: `${describeReviewedPod(review)} ${found.reason}` };
  }
  const { workload } = found;
  const requested = new Set(selections.map((selection) => selection.interface));
  const choice = { workload, requested, view, claims: new OwnedClaims(workload, view), addRecheck };
  const elements = selections.map((selection): NetworkElement => {
    const currentReference = referenceOf(selection);
    const claim = admissibleClaim(chooseClaim(selection, currentReference, choice), view);
    return {
      selection,
      claim: withholdClaim(claim, currentReference, creator) ?? claim,
      currentReference,
      ipamExtensionsNames: ipamExtensionsNames(selection, workload),
    };
  });
  return findRefusal(elements) ?? admitPod(value, namespace, elements);
}

/** kubevirt/ipam-extensions takes one network of the VM for all elements of its NAD, and one name for all CNI networks. */
function ipamExtensionsNames({ nad }: NetworkSelection, { owner, networks }: Workload): string[] {
  return networks
    .filter((network) => network.nad.namespace === nad.namespace && network.nad.name === nad.name)
    .map(({ name }) => ipamExtensionsClaimName(owner.name, name));
}

/**
 * A NAD that could not be read makes the pod wait. Without a NAD, or with a config that is not JSON, KubeVirt or Multus starts no guest. A NAD that
 * Holdfast cannot use may still be one of another IPAM, for example with a config over Holdfast's limits. Its networks must work, and get no new
 * claims, so the pod is admitted with a warning. Holdfast's agent gives no address on it.
 */
function admissibleClaim(claim: ElementClaim, { lookupFailure }: ClusterView): ElementClaim {
  if (claim.kind !== 'unknown') return claim;
  const { claim: name, reason, warning } = claim;
  return lookupFailure === undefined
    ? { kind: 'none', why: reason, warning }
    : { kind: 'foreign', claim: name, reason: `the VM starts when its network is known: ${reason}` };
}

/** Another IPAM may trust every reference, so a pod of an unverified creator gets no new one. */
function withholdClaim(
  claim: ElementClaim,
  currentReference: string | undefined,
  creator: CreatorCheck,
): ElementClaim | undefined {
  if (creator.kind !== 'unverified' || claim.kind !== 'claim' || claim.name === currentReference) return undefined;
  return { kind: 'none', why: creator.reason };
}

/** A pod without the launcher label was never reviewed, so all of its networks are new. */
function previousLauncher({ oldPod }: PodReview): Pod | undefined {
  return oldPod !== undefined && isLauncher(oldPod) ? oldPod : undefined;
}

function admitPod(value: string, namespace: string, elements: readonly NetworkElement[]): PodAdmission {
  const references = new Map<number, string>();
  const warnings: string[] = [];
  elements.forEach((element, index) => {
    const { claim, selection } = element;
    if (claim.kind === 'claim') references.set(index, claim.name);
    if (claim.kind === 'claim' && isReplaced(element)) {
      const replaced = `IPAMClaim ${String(selection.claimReference)} of kubevirt/ipam-extensions`;
      warnings.push(`${describeSelection(selection)} refers to IPAMClaim ${claim.name} in place of ${replaced}`);
    }
    if (claim.kind === 'none' && claim.warning !== undefined) warnings.push(claim.warning);
  });
  const wanted = withClaimReferences(value, namespace, references);
  return {
    allowed: true,
    patch: wanted === value ? [] : [{ op: 'replace', path: PATCH_PATH, value: wanted }],
    warnings,
  };
}

/** An element of the networks annotation and its claim. */
interface NetworkElement {
  selection: NetworkSelection;
  claim: ElementClaim;
  /** The claim to which the present pod refers on this interface and NAD. */
  currentReference: string | undefined;
  /** The names that kubevirt/ipam-extensions may have written as the reference. It runs beside Holdfast during a move. */
  ipamExtensionsNames: readonly string[];
}

/** True if kubevirt/ipam-extensions has written the reference, which is then replaced. */
function isReplaced({ selection, claim, ipamExtensionsNames }: NetworkElement): boolean {
  const given = selection.claimReference;
  return given !== undefined && claim.kind === 'claim' && given !== claim.name && ipamExtensionsNames.includes(given);
}

interface ElementCheck {
  name: PodCheck;
  /** @returns the problem, or undefined */
  run: (element: NetworkElement) => string | undefined;
}

const ELEMENT_CHECKS: readonly ElementCheck[] = [
  { name: 'claim-free', run: ({ claim }) => (claim.kind === 'foreign' ? claim.reason : undefined) },
  {
    name: 'reference-expected',
    run: (element) => {
      const { selection, claim, currentReference } = element;
      const given = selection.claimReference;
      if (given === undefined || (claim.kind === 'claim' && given === claim.name)) return undefined;
      if (isReplaced(element)) return undefined;
      // a pod keeps a reference that it has already
      if (claim.kind === 'none' && given === currentReference) return undefined;
      const shown = `"${CLAIM_REFERENCE_KEY}" of ${describeSelection(selection)} is ${JSON.stringify(given)}`;
      if (claim.kind === 'claim') {
        return `${shown}, expected ${JSON.stringify(claim.name)}: leave the key out, the webhook sets it`;
      }
      return claim.kind === 'none'
        ? `${shown}, but there is no claim for it: ${claim.why}; leave the key out`
        : undefined;
    },
  },
  {
    name: 'addresses-or-claim',
    run: ({ selection, claim }) =>
      selection.requestsAddresses && claim.kind === 'claim'
        ? `${describeSelection(selection)} has "ips", which cannot be combined with its IPAMClaim ${claim.name} ` +
          '(multi-net-spec 4.1.2.1.11): leave "ips" out, and request addresses in the annotation ' +
          'network.kubevirt.io/addresses of the VM'
        : undefined,
  },
];

/** Returns the refusal of the first check that fails, for the first element that fails it. */
function findRefusal(elements: readonly NetworkElement[]): PodRefusal | undefined {
  for (const { name, run } of ELEMENT_CHECKS) {
    for (const element of elements) {
      const reason = run(element);
      if (reason !== undefined) return { allowed: false, check: name, reason };
    }
  }
  return undefined;
}
