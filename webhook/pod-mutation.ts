import jsonpatch, { type AddOperation, type ReplaceOperation } from 'fast-json-patch';
import { joinKey } from '../api/meta.js';
import {
  CLAIM_REFERENCE_KEY,
  DEFAULT_NETWORK_ANNOTATION,
  LAUNCHER_CREATOR,
  NETWORKS_ANNOTATION,
} from '../api/names.js';
import {
  type NetworkSelection,
  NetworkSelectionError,
  describeSelection,
  interfaceNameOf,
  parseNetworkSelections,
  withClaimReferences,
} from '../api/network-selection.js';
import { type Pod, isLauncher } from '../api/pod.js';
import type { ClusterView, Recheck } from '../cluster/cluster-view.js';
import { type ElementClaim, chooseClaim } from '../cluster/element-claim.js';
import { findWorkload } from '../cluster/workload.js';
import { type CreatorCheck, type Requester, checkCreator } from './launcher-creator.js';

/** A request to create or change a pod. */
export interface PodReview {
  operation: 'CREATE' | 'UPDATE';
  namespace: string;
  pod: Pod;
  /** The present pod, on UPDATE. */
  oldPod?: Pod | undefined;
  requester: Requester;
}

export type PodDecision = (PodAdmission | PodRefusal) & {
  /** Objects whose live state could change the decision. */
  rechecks: readonly Recheck[];
};

export interface PodAdmission {
  allowed: true;
  /** Changes to the annotations for networks and creator; empty if the pod needs none. */
  patch: (ReplaceOperation<string> | AddOperation<string>)[];
  warnings: string[];
}

export interface PodRefusal {
  allowed: false;
  /** The check that refused the pod, for metrics and logs. */
  check: PodCheck;
  /** The text of the answer and of the log. */
  reason: string;
}

/** In the order in which they run. */
export type PodCheck =
  | 'default-network'
  | 'annotation'
  | 'created-by-kubevirt'
  | 'controlled-by-vmi'
  | 'vmi-exists'
  | 'vm-exists'
  | ElementCheck['name'];

/** An element of the networks annotation and its claim. */
interface NetworkElement {
  selection: NetworkSelection;
  claim: ElementClaim;
  /** The claim to which the present pod refers on this interface and NAD. */
  currentReference: string | undefined;
}

interface ElementCheck {
  name: 'claim-free' | 'reference-expected' | 'addresses-or-claim';
  /** @returns the problem, or undefined */
  run: (element: NetworkElement) => string | undefined;
}

const PATCH_PATH = `/metadata/annotations/${jsonpatch.escapePathComponent(NETWORKS_ANNOTATION)}`;

const CREATOR_PATH = `/metadata/annotations/${jsonpatch.escapePathComponent(LAUNCHER_CREATOR)}`;

const ELEMENT_CHECKS: readonly ElementCheck[] = [
  { name: 'claim-free', run: ({ claim }) => (claim.kind === 'foreign' ? claim.reason : undefined) },
  {
    name: 'reference-expected',
    run: ({ selection, claim, currentReference }) => {
      const given = selection.claimReference;
      if (given === undefined || (claim.kind === 'claim' && given === claim.name)) return undefined;
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

/**
 * Decides to which claims the network elements of a launcher pod refer, or why the pod is refused. Pure: the same input gives the same bytes. A
 * patched pod is not changed again.
 */
export function reviewPod(review: PodReview, view: ClusterView): PodDecision {
  const rechecks: Recheck[] = [];
  const outcome = decide(review, view, (recheck) => rechecks.push(recheck));
  return { ...outcome, rechecks };
}

const UNCHANGED: PodAdmission = Object.freeze({ allowed: true, patch: [], warnings: [] });

function decide(review: PodReview, view: ClusterView, addRecheck: (one: Recheck) => void): PodAdmission | PodRefusal {
  const oldPod = previousLauncher(review);
  if (!isLauncher(review.pod) && oldPod === undefined) return UNCHANGED;
  const creator = checkCreator(review.pod, oldPod, review.requester);
  if (creator.kind === 'refused') {
    return { allowed: false, check: 'created-by-kubevirt', reason: `${describePod(review)} ${creator.reason}` };
  }
  const outcome =
    refuseDefaultNetwork(review, oldPod) ?? decideNetworks({ ...review, oldPod }, { view, addRecheck, creator });
  return outcome.allowed && creator.kind === 'unverified' ? recordCreator(outcome, creator) : outcome;
}

/** Only launchers with networks, and so with annotations, have a creator to record. */
function recordCreator(outcome: PodAdmission, creator: Extract<CreatorCheck, { kind: 'unverified' }>): PodAdmission {
  const warnings = [...outcome.warnings, `the pod gets no address of an IPAMClaim: ${creator.reason}`];
  const marked = creator.mark === undefined ? [] : [{ op: 'add' as const, path: CREATOR_PATH, value: creator.mark }];
  return { ...outcome, patch: [...outcome.patch, ...marked], warnings };
}

/** A reference on the default network is refused: Holdfast does not serve the pod network, so its claim could only be that of another interface. */
function refuseDefaultNetwork(review: PodReview, oldPod: Pod | undefined): PodRefusal | undefined {
  const value = review.pod.metadata.annotations?.[DEFAULT_NETWORK_ANNOTATION];
  if (value === undefined || value === oldPod?.metadata.annotations?.[DEFAULT_NETWORK_ANNOTATION]) return undefined;
  const selections = readSelections(value, review.namespace);
  if (typeof selections === 'string') return unreadableAnnotation(DEFAULT_NETWORK_ANNOTATION, review, selections);
  const reference = selections.find(({ claimReference }) => claimReference !== undefined)?.claimReference;
  if (reference === undefined) return undefined;
  const reason =
    `annotation ${DEFAULT_NETWORK_ANNOTATION} of ${describePod(review)} has "${CLAIM_REFERENCE_KEY}" ${JSON.stringify(reference)}: ` +
    'persistent addresses are for secondary networks only; leave the key out';
  return { allowed: false, check: 'default-network', reason };
}

function unreadableAnnotation(annotation: string, review: PodReview, problem: string): PodRefusal {
  const reason = `annotation ${annotation} of ${describePod(review)} cannot be read: ${problem}`;
  return { allowed: false, check: 'annotation', reason };
}

interface ReviewContext {
  view: ClusterView;
  addRecheck: (recheck: Recheck) => void;
  creator: CreatorCheck;
}

function decideNetworks(review: PodReview, { view, addRecheck, creator }: ReviewContext): PodAdmission | PodRefusal {
  const { pod, oldPod, namespace } = review;
  const value = networksOf(pod);
  if (value === undefined || value === (oldPod && networksOf(oldPod))) return UNCHANGED;

  const selections = readSelections(value, namespace);
  if (typeof selections === 'string') return unreadableAnnotation(NETWORKS_ANNOTATION, review, selections);
  const referenceOf = currentReferences(oldPod, namespace);
  const workload = findWorkload(pod, namespace, { view, addRecheck });
  if (!workload.found) {
    // a pod that outlives its VMI may be changed, but gets no new reference
    const hasNoNewReference = selections.every(
      (each) => each.claimReference === undefined || each.claimReference === referenceOf(each),
    );
    if (review.operation === 'UPDATE' && hasNoNewReference) return UNCHANGED;
    return { allowed: false, check: workload.check, reason: `${describePod(review)} ${workload.reason}` };
  }
  const requested = new Set(selections.map((selection) => selection.interface));
  const elements = selections.map((selection): NetworkElement => {
    const currentReference = referenceOf(selection);
    const claim = chooseClaim(selection, currentReference, {
      workload: workload.workload,
      requested,
      view,
      addRecheck,
    });
    return { selection, claim: withholdClaim(claim, currentReference, creator) ?? claim, currentReference };
  });
  return findRefusal(elements) ?? admitPod(value, namespace, elements);
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

function findRefusal(elements: readonly NetworkElement[]): PodRefusal | undefined {
  for (const { name, run } of ELEMENT_CHECKS) {
    for (const element of elements) {
      const reason = run(element);
      if (reason !== undefined) return { allowed: false, check: name, reason };
    }
  }
  return undefined;
}

function admitPod(value: string, namespace: string, elements: readonly NetworkElement[]): PodAdmission {
  const references = new Map<number, string>();
  const warnings: string[] = [];
  elements.forEach(({ claim }, index) => {
    if (claim.kind === 'claim') references.set(index, claim.name);
    if (claim.kind === 'none' && claim.warning !== undefined) warnings.push(claim.warning);
  });
  const wanted = withClaimReferences(value, namespace, references);
  return {
    allowed: true,
    patch: wanted === value ? [] : [{ op: 'replace', path: PATCH_PATH, value: wanted }],
    warnings,
  };
}

/** @returns the problem if the annotation is invalid */
function readSelections(value: string, namespace: string): NetworkSelection[] | string {
  try {
    return parseNetworkSelections(value, namespace);
  } catch (error) {
    if (error instanceof NetworkSelectionError) return error.message;
    throw error;
  }
}

/**
 * Returns a function that finds the reference of the present pod by interface and NAD. virt-controller rewrites the annotation of a running pod
 * without our references, so they are restored.
 */
function currentReferences(
  oldPod: Pod | undefined,
  namespace: string,
): (selection: NetworkSelection) => string | undefined {
  const value = oldPod && networksOf(oldPod);
  const old = value === undefined ? [] : readSelections(value, namespace);
  if (typeof old === 'string') return () => undefined;
  const attachmentKey = (selection: NetworkSelection) =>
    `${interfaceNameOf(selection)} ${joinKey(selection.nad.namespace, selection.nad.name)}`;
  const references = new Map(old.map((selection) => [attachmentKey(selection), selection.claimReference]));
  return (selection) => references.get(attachmentKey(selection));
}

function networksOf(pod: Pod): string | undefined {
  return pod.metadata.annotations?.[NETWORKS_ANNOTATION];
}

function describePod({ namespace, pod }: PodReview): string {
  return `pod ${joinKey(namespace, pod.metadata.name)}`;
}
