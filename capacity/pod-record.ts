import { type Pool, servesNamespace } from '../addressing/pool/pool.js';
import { isCapacityResource, readQuantity } from '../api/capacity.js';
import { asRecord, recordsIn } from '../api/json.js';
import { isBeingDeleted } from '../api/meta.js';
import { shortHash } from '../api/names.js';
import { MAX_NETWORK_ELEMENTS } from '../api/networks/network-selection.js';
import { type Pod, isTerminal } from '../api/pod.js';
import { type SchedulingConstraints, canRun, readSchedulingConstraints } from './node-fit.js';
import type { NodeRecord } from './node-record.js';
import type { PendingPodGroup } from './offers.js';

/** The cached fields of a pod that requests addresses. */
export interface PodRecord {
  readonly uid: string;
  readonly namespace: string;
  /** The number of addresses by extended resource. */
  readonly requests: ReadonlyMap<string, number>;
  /** The node to which the pod is bound. */
  readonly node?: string;
  /** When the interfaces of the pod were first seen to exist, in ms of the clock. It gets no more addresses, but its leases may be seen later. */
  readonly attachedAt?: number;
  /** Whether the pod is being deleted. */
  readonly isLeaving: boolean;
  /** Set for an unschedulable pod only. */
  readonly constraints?: SchedulingConstraints;
}

/**
 * @param now in ms of the clock
 * @returns undefined if the pod has ended or requests no addresses
 */
export function readPodRecord(pod: Pod, now: number): PodRecord | undefined {
  if (isTerminal(pod)) return undefined;
  // a tenant decides how many resources a pod requests, and each round looks at all of them
  const requests = new Map([...requestsOf(pod.spec)].slice(0, MAX_NETWORK_ELEMENTS));
  if (requests.size === 0) return undefined;
  const node = pod.spec?.nodeName;
  const isLeaving = isBeingDeleted(pod);
  const constraints = !node && !isLeaving && isUnschedulable(pod) ? readSchedulingConstraints(pod.spec) : undefined;
  return {
    uid: pod.metadata.uid ?? '',
    namespace: pod.metadata.namespace ?? '',
    requests,
    isLeaving,
    ...(isAttached(pod) && { attachedAt: now }),
    ...(node && { node }),
    ...(constraints && { constraints }),
  };
}

/** @param before what was cached of the pod, or of an earlier one of its name */
export function withFirstAttachment(pod: PodRecord, before: PodRecord | undefined): PodRecord {
  const attachedAt = before?.uid === pod.uid ? before.attachedAt : undefined;
  return pod.attachedAt === undefined || attachedAt === undefined ? pod : { ...pod, attachedAt };
}

/** The runtime reports a sandbox only after all its interfaces exist. */
function isAttached({ status }: Pod): boolean {
  return status?.phase === 'Running' || !!status?.podIP;
}

function isUnschedulable({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(
    (condition) =>
      condition.type === 'PodScheduled' &&
      condition.status === 'False' &&
      (condition as { reason?: unknown }).reason === 'Unschedulable',
  );
}

/**
 * Adds up the requests of a pod as the scheduler does: the sum of all containers and restartable init containers, or the largest sum while an
 * ordinary init container runs.
 */
export function requestsOf(spec: unknown): Map<string, number> {
  const { containers, initContainers } = asRecord(spec);
  const running = new Map<string, number>();
  const peak = new Map<string, number>();
  for (const container of recordsIn(initContainers)) {
    const own = ownRequests(container);
    const goesOn = container.restartPolicy === 'Always';
    for (const [resource, count] of own) {
      const together = (running.get(resource) ?? 0) + count;
      if (goesOn) running.set(resource, together);
      peak.set(resource, Math.max(peak.get(resource) ?? 0, together));
    }
  }
  for (const container of recordsIn(containers)) {
    for (const [resource, count] of ownRequests(container)) running.set(resource, (running.get(resource) ?? 0) + count);
  }
  for (const [resource, count] of peak) running.set(resource, Math.max(running.get(resource) ?? 0, count));
  return running;
}

function ownRequests({ resources }: Record<string, unknown>): [string, number][] {
  return Object.entries(asRecord(asRecord(resources).requests)).flatMap(([resource, value]): [string, number][] => {
    const count = isCapacityResource(resource) ? (readQuantity(value) ?? 0) : 0;
    return count > 0 ? [[resource, count]] : [];
  });
}

/** The most groups that get an offer in a round. */
const MAX_GROUPS = 500;
/** The most groups that are examined in a round, including groups that can run on no node. */
const MAX_EXAMINED_GROUPS = 5_000;

/** A pool and the nodes that may show it. */
export interface ShownPool {
  readonly pool: Pool;
  readonly nodes: readonly NodeRecord[];
}

interface RequestingPodGroup extends Omit<PendingPodGroup, 'requested'> {
  readonly requests: ReadonlyMap<string, number>;
}

interface PendingPodGroups {
  readonly groups: readonly RequestingPodGroup[];
  /** Keys of the groups that were not examined. */
  readonly skipped: ReadonlySet<string>;
}

type PodGroupConstraints = Omit<RequestingPodGroup, 'nodes'> & { readonly constraints: SchedulingConstraints };

/**
 * Groups pending pods that request the same addresses and can run on the same nodes. Ignores pods that request an unpublished pool or can run
 * on no node. If there are too many groups, namespaces take turns, so that no namespace blocks another one.
 * @param pools by extended resource
 * @param turn if there are too many groups, each turn examines other groups
 */
export function groupPendingPods(
  pods: readonly PodRecord[],
  pools: ReadonlyMap<string, ShownPool>,
  turn: number,
): PendingPodGroups {
  const groups = new Map<string, PodGroupConstraints>();
  const keysOf = new Map<string, Set<string>>();
  for (const { namespace, requests, constraints } of pods) {
    const isServed = (resource: string) => {
      const shown = pools.get(resource);
      return shown !== undefined && servesNamespace(shown.pool, namespace);
    };
    if (constraints === undefined || ![...requests.keys()].every(isServed)) continue;
    const key = shortHash(JSON.stringify([[...requests].sort(), constraints]), 16);
    groups.set(key, { key, requests, constraints, pods: (groups.get(key)?.pods ?? 0) + 1 });
    keysOf.set(namespace, (keysOf.get(namespace) ?? new Set()).add(key));
  }
  const sets = new Map([...pools].map(([resource, { nodes }]) => [resource, new Set(nodes)]));
  const found: RequestingPodGroup[] = [];
  const skipped = new Set(groups.keys());
  const order = (ids: Iterable<string>) => (groups.size > MAX_GROUPS ? shuffledByTurn([...ids], turn) : [...ids]);
  for (const key of interleaved(order(keysOf.keys()).map((namespace) => order(keysOf.get(namespace) ?? [])))) {
    const known = groups.get(key);
    if (known === undefined) continue;
    skipped.delete(key);
    const { constraints, ...group } = known;
    const nodes = nodesThatFit(
      constraints,
      [...group.requests.keys()].flatMap((resource) => sets.get(resource) ?? []),
    );
    if (nodes.length > 0) found.push({ ...group, nodes });
    if (found.length === MAX_GROUPS) break;
  }
  return { groups: found, skipped };
}

/** Shuffles the ids by turn. Added or removed ids do not change the order of the others in a turn. */
function shuffledByTurn(ids: readonly string[], turn: number): string[] {
  const lots = new Map(ids.map((id) => [id, shortHash(`${turn}/${id}`, 16)]));
  const lotOf = (id: string) => lots.get(id) ?? '';
  return [...ids].sort((a, b) => (lotOf(a) < lotOf(b) ? -1 : 1));
}

/** Returns the first of each list, then the second of each, and so on: each key once, up to the limit. */
function interleaved(lists: readonly (readonly string[])[]): string[] {
  const keys = new Set<string>();
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  for (let place = 0; place < longest && keys.size < MAX_EXAMINED_GROUPS; place++) {
    for (const key of lists.flatMap((list) => list[place] ?? [])) keys.add(key);
  }
  return [...keys].slice(0, MAX_EXAMINED_GROUPS);
}

/** @param sets the nodes that show each of the resources */
function nodesThatFit(constraints: SchedulingConstraints, sets: readonly ReadonlySet<NodeRecord>[]): string[] {
  const [first = new Set<NodeRecord>(), ...others] = sets;
  return [...first]
    .filter((node) => others.every((nodes) => nodes.has(node)) && canRun(constraints, node.traits))
    .map(({ traits }) => traits.name);
}
