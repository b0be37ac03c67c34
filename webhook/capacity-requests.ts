import { capacityResource, isCapacityResource, readQuantity } from '../api/capacity.js';
import { asRecord, recordsIn } from '../api/json.js';
import { joinKey } from '../api/meta.js';
import { MIRROR_POD_ANNOTATION, NETWORKS_ANNOTATION } from '../api/names.js';
import {
  type NetworkSelection,
  NetworkSelectionError,
  defaultSelectionOf,
  parseNetworkSelections,
} from '../api/network-selection.js';
import { type Pod, isLauncher } from '../api/pod.js';
import type { ClusterView, Recheck } from '../cluster/cluster-view.js';
import { chooseClaim } from '../cluster/element-claim.js';
import { findWorkload } from '../cluster/workload.js';

/** A pod that is about to be created. */
export interface CapacityReview {
  namespace: string;
  pod: Pod;
  /** Its spec as it was sent. */
  spec: unknown;
}

export interface CapacityContext {
  view: ClusterView;
  /** The pool that serves a NAD's network in a namespace, where nodes show what it has. @param nad `namespace/name` */
  publishedPool: (namespace: string, nad: string) => string | undefined;
}

export interface CapacityDecision {
  patch: { op: 'add'; path: string; value: unknown }[];
  warnings: string[];
  /** What a younger look could change the answer by. */
  doubts: readonly Recheck[];
}

/**
 * Lets a pod ask for the addresses that it will need: one of each interface without a claim, whose network has a pool that nodes show. An
 * interface with a claim has its address, wherever the pod runs: a request for one more would keep the owner of the last address out. Pure,
 * and of no effect on a pod that asks already.
 */
export function reviewCapacity(review: CapacityReview, sight: CapacityContext): CapacityDecision {
  const doubts: Recheck[] = [];
  try {
    const wanted = desiredRequests(review, sight, (doubt) => doubts.push(doubt));
    const patch = wanted === undefined ? [] : patchOf(review, wanted);
    return { patch, warnings: [], doubts };
  } catch (error) {
    if (!(error instanceof NetworkSelectionError)) throw error;
    const warning = `its addresses are not counted: annotation ${NETWORKS_ANNOTATION} cannot be read: ${error.message}`;
    return { patch: [], warnings: [warning], doubts };
  }
}

type RequestCounts = ReadonlyMap<string, number>;

/** @returns undefined for a pod that is none of our business */
function desiredRequests(
  { namespace, pod, spec }: CapacityReview,
  { view, publishedPool }: CapacityContext,
  doubt: (doubt: Recheck) => void,
): RequestCounts | undefined {
  const { annotations = {} } = pod.metadata;
  // a node's own, and pods in the node's network, which Multus passes over
  if (MIRROR_POD_ANNOTATION in annotations || asRecord(spec).hostNetwork === true) return undefined;
  const selections = parseNetworkSelections(annotations[NETWORKS_ANNOTATION] ?? '', namespace);
  let hasClaim = ({ claimReference }: NetworkSelection) => claimReference !== undefined;
  if (isLauncher(pod)) {
    const found = findWorkload(pod, namespace, { view, doubt });
    // it is refused elsewhere
    if (!found.found) return undefined;
    const requested = new Set(selections.map((selection) => selection.interface));
    const choice = { workload: found.workload, requested, view, doubt };
    hasClaim = (selection) => chooseClaim(selection, selection.claimReference, choice).kind !== 'none';
  }
  const wanted = new Map<string, number>();
  for (const { nad } of [...selections.filter((selection) => !hasClaim(selection)), ...defaultNetworkSelections(pod)]) {
    const pool = publishedPool(namespace, joinKey(nad.namespace, nad.name));
    if (pool === undefined) continue;
    const resource = capacityResource(pool);
    wanted.set(resource, (wanted.get(resource) ?? 0) + 1);
  }
  return wanted;
}

/** The NAD in place of the pod's own network. Where Multus looks for one without a namespace, only its configuration says. */
function defaultNetworkSelections(pod: Pod): NetworkSelection[] {
  return defaultSelectionOf(pod, '').filter(({ nad }) => nad.namespace !== '');
}

type Container = Record<string, unknown>;

/** One operation for each container that asks for something else from now on. */
function patchOf({ pod, spec }: CapacityReview, wanted: RequestCounts): CapacityDecision['patch'] {
  const containers = recordsIn(asRecord(spec).containers);
  const before = containers.map(ownRequests);
  const after = before.map((requests) => new Map(requests));
  const [first] = after;
  if (first === undefined) return [];
  for (const resource of new Set([...wanted.keys(), ...before.flatMap((requests) => [...requests.keys()])])) {
    const asked = before.reduce((sum, requests) => sum + (requests.get(resource) ?? 0), 0);
    const missing = (wanted.get(resource) ?? 0) - asked;
    if (missing > 0) first.set(resource, (first.get(resource) ?? 0) + missing);
    // others add requests to launchers for all networks of a resource's name, with a claim or without; what people ask for they may
    else if (isLauncher(pod)) removeExcess(after, resource, -missing);
  }
  return containers.flatMap((container, index): CapacityDecision['patch'] => {
    const [old, requests] = [before[index], after[index]];
    if (old === undefined || requests === undefined || isSameCounts(old, requests)) return [];
    return [{ op: 'add', path: `/spec/containers/${index}/resources`, value: withRequests(container, requests) }];
  });
}

function removeExcess(containers: readonly Map<string, number>[], resource: string, excess: number): void {
  let left = excess;
  for (const requests of containers) {
    const less = Math.min(left, requests.get(resource) ?? 0);
    if (less === 0) continue;
    requests.set(resource, (requests.get(resource) ?? 0) - less);
    left -= less;
  }
}

/** A limit without a request is both. */
function ownRequests(container: Container): Map<string, number> {
  const { requests, limits } = resourcesOf(container);
  const found = Object.entries({ ...limits, ...requests }).flatMap(([resource, value]): [string, number][] =>
    isCapacityResource(resource) ? [[resource, readQuantity(value) ?? 0]] : [],
  );
  return new Map(found);
}

/** Of an extended resource, request and limit are the same. */
function withRequests(container: Container, wanted: RequestCounts): object {
  const { resources, requests, limits } = resourcesOf(container);
  const withWanted = (counts: Record<string, unknown>) => {
    const others = Object.entries(counts).filter(([resource]) => !isCapacityResource(resource));
    const ours = [...wanted].filter(([, count]) => count > 0).map(([resource, count]) => [resource, String(count)]);
    return Object.fromEntries([...others, ...ours]) as Record<string, unknown>;
  };
  return { ...resources, requests: withWanted(requests), limits: withWanted(limits) };
}

function resourcesOf(container: Container) {
  const resources = asRecord(container.resources);
  return { resources, requests: asRecord(resources.requests), limits: asRecord(resources.limits) };
}

function isSameCounts(one: RequestCounts, other: RequestCounts): boolean {
  return one.size === other.size && [...one].every(([resource, count]) => other.get(resource) === count);
}
