import { capacityResource, isCapacityResource, readQuantity } from '../api/capacity.js';
import { asRecord, recordsIn } from '../api/json.js';
import { joinKey } from '../api/meta.js';
import { MIRROR_POD_ANNOTATION, NETWORKS_ANNOTATION } from '../api/names.js';
import {
  type NetworkSelection,
  NetworkSelectionError,
  defaultSelectionOf,
  parseNetworkSelections,
} from '../api/networks/network-selection.js';
import { type Pod, isLauncher } from '../api/pod.js';
import type { ClusterView, Recheck } from '../cluster/cluster-view.js';
import { chooseClaim } from '../cluster/element-claim.js';
import { OwnedClaims } from '../cluster/owned-claims.js';
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
  /** Returns the pool of a NAD, `namespace/name`, in a namespace if nodes show its capacity. */
  publishedPool: (namespace: string, nad: string) => string | undefined;
}

export interface CapacityDecision {
  patch: { op: 'add'; path: string; value: unknown }[];
  warnings: string[];
  /** Objects whose live state could change the decision. */
  rechecks: readonly Recheck[];
}

/** No pod that runs has so many requests and limits, but a tenant can send a review with more. A container counts as one. */
export const MAX_POD_RESOURCES = 4_096;

/**
 * Adds requests for the addresses that a pod needs: one for each interface without a claim if nodes show the capacity of its pool. An interface
 * with a claim has its address on every node: a request would block the owner of the last address. Pure and idempotent.
 */
export function reviewCapacity(review: CapacityReview, context: CapacityContext): CapacityDecision {
  const rechecks: Recheck[] = [];
  const uncounted = (why: string): CapacityDecision => {
    return { patch: [], warnings: [`the scheduler does not count the addresses of this pod: ${why}`], rechecks };
  };
  if (countResources(review) > MAX_POD_RESOURCES)
    return uncounted(`its containers have more than ${MAX_POD_RESOURCES} requests and limits`);
  try {
    const desired = desiredRequests(review, context, (recheck) => rechecks.push(recheck));
    const patch = desired === undefined ? [] : patchOf(review, desired);
    return { patch, warnings: [], rechecks };
  } catch (error) {
    if (!(error instanceof NetworkSelectionError)) throw error;
    return uncounted(`annotation ${NETWORKS_ANNOTATION} is invalid: ${error.message}`);
  }
}

function countResources({ spec }: CapacityReview): number {
  return recordsIn(asRecord(spec).containers).reduce((sum, container) => {
    const { requests, limits } = resourcesOf(container);
    return sum + 1 + Object.keys(requests).length + Object.keys(limits).length;
  }, 0);
}

type RequestCounts = ReadonlyMap<string, number>;

/** @returns undefined for a pod that must not be changed */
function desiredRequests(
  { namespace, pod, spec }: CapacityReview,
  { view, publishedPool }: CapacityContext,
  addRecheck: (recheck: Recheck) => void,
): RequestCounts | undefined {
  const { annotations = {} } = pod.metadata;
  // Multus ignores mirror pods and pods in the network of the node
  if (MIRROR_POD_ANNOTATION in annotations || asRecord(spec).hostNetwork === true) return undefined;
  const selections = parseNetworkSelections(annotations[NETWORKS_ANNOTATION] ?? '', namespace);
  let hasClaim = ({ claimReference }: NetworkSelection) => claimReference !== undefined;
  if (isLauncher(pod)) {
    const found = findWorkload(pod, namespace, { view, addRecheck });
    // the webhook for launchers refuses it
    if (!found.found) return undefined;
    const requested = new Set(selections.map((selection) => selection.interface));
    const { workload } = found;
    const choice = { workload, requested, view, claims: new OwnedClaims(workload, view), addRecheck };
    hasClaim = (selection) => chooseClaim(selection, selection.claimReference, choice).kind !== 'none';
  }
  const desired = new Map<string, number>();
  for (const { nad } of [...selections.filter((selection) => !hasClaim(selection)), ...defaultNetworkSelections(pod)]) {
    const pool = publishedPool(namespace, joinKey(nad.namespace, nad.name));
    if (pool === undefined) continue;
    const resource = capacityResource(pool);
    desired.set(resource, (desired.get(resource) ?? 0) + 1);
  }
  return desired;
}

/** Returns the NAD that replaces the pod network. Only the configuration of Multus tells where it looks for one without a namespace. */
function defaultNetworkSelections(pod: Pod): NetworkSelection[] {
  return defaultSelectionOf(pod, '').filter(({ nad }) => nad.namespace !== '');
}

type Container = Record<string, unknown>;

/** Returns one operation for each container whose requests change. */
function patchOf({ pod, spec }: CapacityReview, desired: RequestCounts): CapacityDecision['patch'] {
  const containers = recordsIn(asRecord(spec).containers);
  const before = containers.map(ownRequests);
  const after = before.map((requests) => new Map(requests));
  const [first] = after;
  if (first === undefined) return [];
  const excess = new Map<string, number>();
  for (const requests of before) addCounts(excess, requests, 1);
  addCounts(excess, desired, -1);
  for (const [resource, count] of excess) {
    if (count < 0) first.set(resource, (first.get(resource) ?? 0) - count);
  }
  // KubeVirt adds requests to launchers for all networks with a resource name, also to those with a claim; requests of users stay
  if (isLauncher(pod)) removeExcess(after, excess);
  return containers.flatMap((container, index): CapacityDecision['patch'] => {
    const [old, requests] = [before[index], after[index]];
    if (old === undefined || requests === undefined || isSameCounts(old, requests)) return [];
    return [{ op: 'add', path: `/spec/containers/${index}/resources`, value: withRequests(container, requests) }];
  });
}

function addCounts(sums: Map<string, number>, counts: RequestCounts, factor: 1 | -1): void {
  for (const [resource, count] of counts) sums.set(resource, (sums.get(resource) ?? 0) + factor * count);
}

function removeExcess(containers: readonly Map<string, number>[], excess: Map<string, number>): void {
  for (const requests of containers) {
    for (const [resource, count] of requests) {
      const left = Math.max(0, excess.get(resource) ?? 0);
      const less = Math.min(left, count);
      requests.set(resource, count - less);
      excess.set(resource, left - less);
    }
  }
}

/** A limit without a request sets both. */
function ownRequests(container: Container): Map<string, number> {
  const { requests, limits } = resourcesOf(container);
  const found = Object.entries({ ...limits, ...requests }).flatMap(([resource, value]): [string, number][] =>
    isCapacityResource(resource) ? [[resource, readQuantity(value) ?? 0]] : [],
  );
  return new Map(found);
}

/** Request and limit of an extended resource must be equal. */
function withRequests(container: Container, desired: RequestCounts): object {
  const { resources, requests, limits } = resourcesOf(container);
  const withDesired = (counts: Record<string, unknown>) => {
    const others = Object.entries(counts).filter(([resource]) => !isCapacityResource(resource));
    const ours = [...desired].filter(([, count]) => count > 0).map(([resource, count]) => [resource, String(count)]);
    return Object.fromEntries([...others, ...ours]) as Record<string, unknown>;
  };
  return { ...resources, requests: withDesired(requests), limits: withDesired(limits) };
}

function resourcesOf(container: Container) {
  const resources = asRecord(container.resources);
  return { resources, requests: asRecord(resources.requests), limits: asRecord(resources.limits) };
}

function isSameCounts(one: RequestCounts, other: RequestCounts): boolean {
  return one.size === other.size && [...one].every(([resource, count]) => other.get(resource) === count);
}
