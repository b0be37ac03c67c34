import { capacityResource } from '../api/capacity.js';
import { MAX_NETWORK_ELEMENTS } from '../api/networks/network-selection.js';
import type { Family } from '../addressing/address/address.js';
import type { BlockRecord } from '../addressing/block/block.js';
import { effectiveCooldownMs } from '../addressing/lease/lease-times.js';
import { type Pool, servesNamespace } from '../addressing/pool/pool.js';
import { isUntainted } from './node-fit.js';
import { type NodeRecord, hasPoolNetwork } from './node-record.js';
import { type PodRecord, type ShownPool, groupPendingPods } from './pod-record.js';
import type { PendingPodGroup } from './offers.js';
import type { ShareNode } from './shares.js';
import type { Inventory } from './inventory.js';

/** The input of one round. */
export interface CapacityInputs {
  readonly pools: readonly Pool[];
  readonly nodes: readonly NodeRecord[];
  readonly pods: Iterable<PodRecord>;
  readonly inventory: Pick<Inventory, 'heldBy' | 'free'>;
  readonly blocksOf: (pool: Pool) => readonly BlockRecord[];
  /** In milliseconds since the epoch. */
  readonly now: number;
  /** How long agents may answer from their caches. */
  readonly maxStalenessMs: number;
  /** Of pods that were attached before, all leases are seen. In ms of the clock. */
  readonly attachedBefore: number;
}

/** A pool and the requests of pods for its addresses. */
export interface PoolDemand {
  readonly resource: string;
  readonly pool: Pool;
  /** Free addresses that no bound pod waits for; negative if bound pods wait for more addresses than are free. */
  readonly budget: number;
  /** The nodes that may show the pool. */
  readonly nodes: readonly Omit<ShareNode, 'expected' | 'highest'>[];
  /** Requested addresses by node, even if the node may not show the pool. */
  readonly requested: ReadonlyMap<string, number>;
  readonly waiting: readonly PendingPodGroup[];
  /** Keys of pending pod groups that this round did not examine, perhaps groups for this pool. */
  readonly skippedGroups: ReadonlySet<string>;
  readonly waitingPods: number;
}

/** @param turn if there are too many groups of pending pods, each turn examines other groups */
export function observeDemand(inputs: CapacityInputs, turn = 0): PoolDemand[] {
  const { requesting, waitingPods } = groupPods(inputs);
  const pools = [...inputs.pools].sort((a, b) => (a.name < b.name ? -1 : 1));
  const shown = new Map(
    pools.map((pool): [string, ShownPool] => [
      capacityResource(pool.name),
      { pool, nodes: inputs.nodes.filter((node) => hasPoolNetwork(node, pool.nodeSelector)) },
    ]),
  );
  const { groups, skipped } = groupPendingPods(waitingPods, shown, turn);
  return pools.map((pool) => {
    const resource = capacityResource(pool.name);
    const requestingPods = requesting.get(resource) ?? [];
    const counts = countRequests(requestingPods, resource);
    const { budget, own } = freeAddresses(pool, requestingPods, { inputs, resource });
    const waiting = groups.flatMap(({ key, pods, nodes, requests }): PendingPodGroup[] => {
      const requested = requests.get(resource);
      return requested === undefined ? [] : [{ key, pods, nodes, requested }];
    });
    return {
      resource,
      pool,
      budget,
      nodes: (shown.get(resource)?.nodes ?? []).map(({ traits }) => ({
        name: traits.name,
        requested: counts.staying.get(traits.name) ?? 0,
        leavingRequests: counts.leaving.get(traits.name) ?? 0,
        ownFree: own.get(traits.name) ?? 0,
        isUntainted: isUntainted(traits),
      })),
      requested: counts.staying,
      waiting,
      skippedGroups: skipped,
      waitingPods: waiting.reduce((sum, group) => sum + group.pods, 0),
    };
  });
}

/** Visits each pod once. @returns the pods that request each published resource, and the pending pods */
function groupPods({ pools, pods, nodes }: Pick<CapacityInputs, 'pools' | 'pods' | 'nodes'>) {
  const names = new Set(nodes.map(({ traits }) => traits.name));
  const requesting = new Map(pools.map(({ name }): [string, PodRecord[]] => [capacityResource(name), []]));
  const waitingPods: PodRecord[] = [];
  for (const pod of pods) {
    // a tenant can bind pods to nodes that do not exist
    if (pod.node !== undefined && !names.has(pod.node)) continue;
    if (pod.constraints !== undefined) waitingPods.push(pod);
    for (const resource of pod.requests.keys()) requesting.get(resource)?.push(pod);
  }
  return { requesting, waitingPods };
}

function countRequests(pods: readonly PodRecord[], resource: string) {
  const staying = new Map<string, number>();
  const leaving = new Map<string, number>();
  for (const pod of pods) {
    if (pod.node === undefined) continue;
    const counts = pod.isLeaving ? leaving : staying;
    counts.set(pod.node, (counts.get(pod.node) ?? 0) + requestOf(pod, resource));
  }
  return { staying, leaving };
}

/** No more than a pod can have networks: a tenant can bind a pod that requests more than the node shows. */
function requestOf({ requests }: PodRecord, resource: string): number {
  return Math.min(requests.get(resource) ?? 0, MAX_NETWORK_ELEMENTS);
}

/** Counts the scarcer of two families. A pod that is being deleted can still get its addresses, so it counts too. */
function freeAddresses(
  pool: Pool,
  pods: readonly PodRecord[],
  { inputs, resource }: { inputs: CapacityInputs; resource: string },
): { budget: number; own: ReadonlyMap<string, number> } {
  const blocks = inputs.blocksOf(pool);
  const cooledSince = inputs.now - effectiveCooldownMs(pool, inputs.maxStalenessMs);
  let budget = Infinity;
  let own: Map<string, number> | undefined;
  for (const family of pool.families) {
    const free = inputs.inventory.free(pool, family, { blocks, cooledSince });
    const pending = pendingOf(pods, (pod) => missingAddresses(pod, { inputs, resource, pool, family }));
    budget = Math.min(budget, free.total - pending.total);
    if (!blocks.some(({ cidr }) => cidr.family === family)) continue;
    const left = new Map(
      [...free.byNode].map(([node, ownFree]) => [node, Math.max(0, ownFree - (pending.on.get(node) ?? 0))]),
    );
    own = own === undefined ? left : minimumByNode(own, left);
  }
  return { budget: Number.isFinite(budget) ? budget : 0, own: own ?? new Map() };
}

function missingAddresses(
  pod: PodRecord,
  { inputs, resource, pool, family }: { inputs: CapacityInputs; resource: string; pool: Pool; family: Family },
): number {
  const { uid, namespace, attachedAt = Infinity } = pod;
  // a pod that is attached gets no more addresses, and a pod of another namespace gets none
  if (attachedAt < inputs.attachedBefore || !servesNamespace(pool, namespace)) return 0;
  return Math.max(0, requestOf(pod, resource) - inputs.inventory.heldBy(uid, pool.name, family));
}

function pendingOf(pods: readonly PodRecord[], missingOf: (pod: PodRecord) => number) {
  const on = new Map<string, number>();
  let total = 0;
  for (const pod of pods) {
    if (pod.node === undefined) continue;
    const lacks = missingOf(pod);
    total += lacks;
    on.set(pod.node, (on.get(pod.node) ?? 0) + lacks);
  }
  return { total, on };
}

function minimumByNode(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): Map<string, number> {
  return new Map([...one].map(([node, count]) => [node, Math.min(count, other.get(node) ?? 0)]));
}
