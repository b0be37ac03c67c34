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

/** A pod that is about to be created or changed. */
export interface PodReview {
  operation: 'CREATE' | 'UPDATE';
  namespace: string;
  pod: Pod;
  /** The pod as it is, on UPDATE. */
  oldPod?: Pod | undefined;
  requester: Requester;
}

export type PodDecision = (PodAdmission | PodRefusal) & {
  /** What a younger look could change the answer by. */
  doubts: readonly Recheck[];
};

export interface PodAdmission {
  allowed: true;
  /** Of the networks and of the creator, or none if the pod is right already. */
  patch: (ReplaceOperation<string> | AddOperation<string>)[];
  warnings: string[];
}

export interface PodRefusal {
  allowed: false;
  /** The check that refuses: one word per kind of refusal, for metrics and logs. */
  check: PodCheck;
  /** The same words in the log and in the answer. */
  reason: string;
}

/** In the order in which they are made. */
export type PodCheck =
  | 'default-network'
  | 'annotation'
  | 'created-by-kubevirt'
  | 'controlled-by-vmi'
  | 'vmi-exists'
  | 'vm-exists'
  | ElementCheck['name'];

/** A network element, and what is known of it. */
interface NetworkElement {
  selection: NetworkSelection;
  claim: ElementClaim;
  /** The claim to which the pod points already, on this interface and NAD. */
  currentReference: string | undefined;
}

interface ElementCheck {
  name: 'claim-free' | 'reference-expected' | 'addresses-or-claim';
  /** @returns what is wrong, or undefined */
  run: (element: NetworkElement) => string | undefined;
}

const PATCH_PATH = `/metadata/annotations/${jsonpatch.escapePathComponent(NETWORKS_ANNOTATION)}`;

const CREATOR_PATH = `/metadata/annotations/${jsonpatch.escapePathComponent(LAUNCHER_CREATOR)}`;

const ELEMENT_CHECKS: readonly ElementCheck[] = [
  {
    name: 'claim-free',
    run: ({ claim }) => (claim.kind === 'foreign' ? claim.reason : undefined),
  },
  {
    name: 'reference-expected',
    run: ({ selection, claim, currentReference }) => {
      const given = selection.claimReference;
      if (given === undefined || (claim.kind === 'claim' && given === claim.name)) return undefined;
      // what the pod has been given is not taken away from it
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
        ? `${describeSelection(selection)} has "ips", which cannot stand together with its IPAMClaim ${claim.name} ` +
          '(multi-net-spec 4.1.2.1.11): leave "ips" out, and ask for addresses by the annotation ' +
          'network.kubevirt.io/addresses of the VM'
        : undefined,
  },
];

/**
 * Decides about a launcher pod: which of its network elements refer to which claims, or why the pod must not be. Pure; the same input gives
 * the same bytes, and a pod that was changed by the patch is not changed again.
 */
export function reviewPod(review: PodReview, view: ClusterView): PodDecision {
  const doubts: Recheck[] = [];
  const outcome = decide(review, view, (doubt) => doubts.push(doubt));
  return { ...outcome, doubts };
}

const UNCHANGED: PodAdmission = Object.freeze({ allowed: true, patch: [], warnings: [] });

function decide(review: PodReview, view: ClusterView, doubt: (doubt: Recheck) => void): PodAdmission | PodRefusal {
  const oldPod = previousLauncher(review);
  if (!isLauncher(review.pod) && oldPod === undefined) return UNCHANGED;
  const creator = checkCreator(review.pod, oldPod, review.requester);
  if (creator.kind === 'refused') {
    return { allowed: false, check: 'created-by-kubevirt', reason: `${describePod(review)} ${creator.reason}` };
  }
  const outcome =
    refuseDefaultNetwork(review, oldPod) ?? decideNetworks({ ...review, oldPod }, { view, doubt, creator });
  return outcome.allowed && creator.kind === 'unverified' ? recordCreator(outcome, creator) : outcome;
}

/** The annotations are there: a launcher without networks is not marked. */
function recordCreator(outcome: PodAdmission, creator: Extract<CreatorCheck, { kind: 'unverified' }>): PodAdmission {
  const warnings = [...outcome.warnings, `the pod gets no address of an IPAMClaim: ${creator.reason}`];
  const marked = creator.mark === undefined ? [] : [{ op: 'add' as const, path: CREATOR_PATH, value: creator.mark }];
  return { ...outcome, patch: [...outcome.patch, ...marked], warnings };
}

/** In place of the pod's own network, whose addresses are not ours: a claim there could only be that of another interface. */
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
  doubt: (doubt: Recheck) => void;
  creator: CreatorCheck;
}

function decideNetworks(review: PodReview, { view, doubt, creator }: ReviewContext): PodAdmission | PodRefusal {
  const { pod, oldPod, namespace } = review;
  const value = networksOf(pod);
  if (value === undefined || value === (oldPod && networksOf(oldPod))) return UNCHANGED;

  const selections = readSelections(value, namespace);
  if (typeof selections === 'string') return unreadableAnnotation(NETWORKS_ANNOTATION, review, selections);
  const held = currentReferences(oldPod, namespace);
  const workload = findWorkload(pod, namespace, { view, doubt });
  if (!workload.found) {
    // a pod that outlives its VMI may still be changed, but is given nothing
    const nothingNew = selections.every(
      (each) => each.claimReference === undefined || each.claimReference === held(each),
    );
    if (review.operation === 'UPDATE' && nothingNew) return UNCHANGED;
    return { allowed: false, check: workload.check, reason: `${describePod(review)} ${workload.reason}` };
  }
  const requested = new Set(selections.map((selection) => selection.interface));
  const elements = selections.map((selection): NetworkElement => {
    const before = held(selection);
    const claim = chooseClaim(selection, before, { workload: workload.workload, requested, view, doubt });
    return { selection, claim: withholdClaim(claim, before, creator) ?? claim, currentReference: before };
  });
  return findRefusal(elements) ?? admitPod(value, namespace, elements);
}

/** An IPAM beside ours believes every reference, so a pod of an unverified creator gets none. */
function withholdClaim(claim: ElementClaim, held: string | undefined, creator: CreatorCheck): ElementClaim | undefined {
  if (creator.kind !== 'unverified' || claim.kind !== 'claim' || claim.name === held) return undefined;
  return { kind: 'none', why: creator.reason };
}

/** A pod that was no launcher was never reviewed: all that it has is new. */
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

/** @returns what is wrong, where it cannot be read */
function readSelections(value: string, namespace: string): NetworkSelection[] | string {
  try {
    return parseNetworkSelections(value, namespace);
  } catch (error) {
    if (error instanceof NetworkSelectionError) return error.message;
    throw error;
  }
}

/**
 * What the pod points at before the change, by interface and NAD. virt-controller writes the annotation of a living pod anew, without our
 * references: they are given back as they were.
 */
function currentReferences(
  oldPod: Pod | undefined,
  namespace: string,
): (selection: NetworkSelection) => string | undefined {
  const value = oldPod && networksOf(oldPod);
  const old = value === undefined ? [] : readSelections(value, namespace);
  if (typeof old === 'string') return () => undefined;
  const place = (selection: NetworkSelection) =>
    `${interfaceNameOf(selection)} ${joinKey(selection.nad.namespace, selection.nad.name)}`;
  const references = new Map(old.map((selection) => [place(selection), selection.claimReference]));
  return (selection) => references.get(place(selection));
}

function networksOf(pod: Pod): string | undefined {
  return pod.metadata.annotations?.[NETWORKS_ANNOTATION];
}

function describePod({ namespace, pod }: PodReview): string {
  return `pod ${joinKey(namespace, pod.metadata.name)}`;
}
