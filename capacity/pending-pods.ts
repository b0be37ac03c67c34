import { shortHash } from '../api/hash.js';
import type { Pool } from '../ipam/core/pool.js';
import { canRun } from './node-fit.js';
import type { NodeRecord } from './node-record.js';
import type { PendingPodGroup } from './offers.js';
import type { SchedulingConstraints } from './scheduling-constraints.js';
import type { PodRecord } from './pod-record.js';

/** Kinds that are given something in a round. */
const MAX_GROUPS = 500;
/** Kinds that are looked at for it, those included that can run nowhere. */
const MAX_EXAMINED_GROUPS = 5_000;

/** A pool, and the nodes that may show it. */
export interface ShownPool {
  readonly pool: Pool;
  readonly nodes: readonly NodeRecord[];
}

export interface RequestingPodGroup extends Omit<PendingPodGroup, 'requested'> {
  readonly requests: ReadonlyMap<string, number>;
}

export interface PendingPodGroups {
  readonly groups: readonly RequestingPodGroup[];
  /** Keys of those that could not be looked at as well. */
  readonly skipped: ReadonlySet<string>;
}

type PodGroupConstraints = Omit<RequestingPodGroup, 'nodes'> & { readonly needs: SchedulingConstraints };

/**
 * Pods that ask for the same and may run on the same nodes are one kind; those that nobody publishes for, and those that may run nowhere, wait
 * for somebody else. Where there are too many kinds, namespaces take turns: none keeps another's from being looked at.
 * @param pools by resource
 * @param turn where there are too many kinds, others are looked at in each turn
 */
export function groupPendingPods(
  pods: readonly PodRecord[],
  pools: ReadonlyMap<string, ShownPool>,
  turn: number,
): PendingPodGroups {
  const kinds = new Map<string, PodGroupConstraints>();
  const keysOf = new Map<string, Set<string>>();
  for (const { namespace, requests, needs } of pods) {
    if (
      needs === undefined ||
      ![...requests.keys()].every((resource) => servesNamespace(pools.get(resource)?.pool, namespace))
    )
      continue;
    const key = shortHash(JSON.stringify([[...requests].sort(), needs]), 16);
    kinds.set(key, { key, requests, needs, pods: (kinds.get(key)?.pods ?? 0) + 1 });
    keysOf.set(namespace, (keysOf.get(namespace) ?? new Set()).add(key));
  }
  const sets = new Map([...pools].map(([resource, { nodes }]) => [resource, new Set(nodes)]));
  const found: RequestingPodGroup[] = [];
  const unseen = new Set(kinds.keys());
  const order = (ids: Iterable<string>) => (kinds.size > MAX_GROUPS ? shuffledByTurn([...ids], turn) : [...ids]);
  for (const key of interleaved(order(keysOf.keys()).map((namespace) => order(keysOf.get(namespace) ?? [])))) {
    const known = kinds.get(key);
    if (known === undefined) continue;
    unseen.delete(key);
    const { needs, ...kind } = known;
    const nodes = nodesThatFit(
      needs,
      [...kind.requests.keys()].flatMap((resource) => sets.get(resource) ?? []),
    );
    if (nodes.length > 0) found.push({ ...kind, nodes });
    if (found.length === MAX_GROUPS) break;
  }
  return { groups: found, skipped: unseen };
}

/** Whether pods of the namespace ever get addresses of it. */
export function servesNamespace(pool: Pool | undefined, namespace: string): boolean {
  return pool !== undefined && (pool.namespaces?.has(namespace) ?? true);
}

/** In another order in each turn, and the same for all rounds of it, whoever comes or goes meanwhile. */
function shuffledByTurn(ids: readonly string[], turn: number): string[] {
  const lots = new Map(ids.map((id) => [id, shortHash(`${turn}/${id}`, 16)]));
  const lotOf = (id: string) => lots.get(id) ?? '';
  return [...ids].sort((a, b) => (lotOf(a) < lotOf(b) ? -1 : 1));
}

/** The first of each, then the second of each, and so on; each key once, and no more than are looked at. */
function interleaved(lists: readonly (readonly string[])[]): string[] {
  const keys = new Set<string>();
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  for (let place = 0; place < longest && keys.size < MAX_EXAMINED_GROUPS; place++) {
    for (const key of lists.flatMap((list) => list[place] ?? [])) keys.add(key);
  }
  return [...keys].slice(0, MAX_EXAMINED_GROUPS);
}

/** @param sets of the nodes that show each of the resources */
function nodesThatFit(needs: SchedulingConstraints, sets: readonly ReadonlySet<NodeRecord>[]): string[] {
  const [first = new Set<NodeRecord>(), ...others] = sets;
  return [...first]
    .filter((node) => others.every((nodes) => nodes.has(node)) && canRun(needs, node.traits))
    .map(({ traits }) => traits.name);
}
