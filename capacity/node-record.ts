import { type Pool, hasNetwork } from '../addressing/pool/pool.js';
import { capacityResource, isCapacityResource, readQuantity } from '../api/capacity.js';
import { asRecord, asString, recordsIn } from '../api/json.js';
import type { KubeObject } from '../api/meta.js';
import { identityMetadataOf } from '../cluster/metadata.js';
import type { WatchSpec } from '../kube/informers/informers.js';
import { NODES } from '../kube/resources.js';
import type { SchedulingTraits, Taint } from './node-fit.js';

/** The cached fields of a node. */
export interface NodeRecord extends KubeObject {
  readonly traits: SchedulingTraits;
  /** What the node shows, by extended resource of Holdfast. */
  readonly shown: ReadonlyMap<string, ShownCapacity>;
}

/** Values in the status of a node. The scheduler uses allocatable. Absent if the key is absent or is not a number. */
interface ShownCapacity {
  readonly capacity?: number;
  readonly allocatable?: number;
}

export const NODE_RECORDS: WatchSpec<KubeObject, NodeRecord> = { resource: NODES, transform: toNodeRecord };

export function toNodeRecord(node: KubeObject): NodeRecord {
  const { spec, status } = node as { spec?: unknown; status?: unknown };
  const { unschedulable, taints } = asRecord(spec);
  return {
    metadata: identityMetadataOf(node.metadata),
    traits: {
      name: node.metadata.name,
      labels: node.metadata.labels ?? {},
      unschedulable: unschedulable === true,
      taints: recordsIn(taints).map(readTaint).filter(isRepelling),
    },
    shown: readShownCapacity(status),
  };
}

/** Whether the node has the network of a pool with this nodeSelector. */
export function hasPoolNetwork(node: NodeRecord, selector: Readonly<Record<string, string>> = {}): boolean {
  return hasNetwork(node, node.traits.labels, selector);
}

/** Whether two versions of a node are equal in all that matters here. Heartbeats are frequent and change none of it. */
export function isSameNodeState(one: NodeRecord, other: NodeRecord): boolean {
  return fingerprintOf(one) === fingerprintOf(other);
}

function fingerprintOf({ metadata, traits, shown }: NodeRecord): string {
  return JSON.stringify([metadata.uid, metadata.deletionTimestamp, traits, [...shown]]);
}

function readTaint({ key, value, effect }: Record<string, unknown>): Taint {
  return { key: asString(key), value: asString(value), effect: asString(effect) };
}

function isRepelling({ effect }: Taint): boolean {
  return effect === 'NoSchedule' || effect === 'NoExecute';
}

function readShownCapacity(status: unknown): Map<string, ShownCapacity> {
  const capacity = asRecord(asRecord(status).capacity);
  const allocatable = asRecord(asRecord(status).allocatable);
  const keys = [...Object.keys(capacity), ...Object.keys(allocatable)].filter(isCapacityResource);
  return new Map(
    keys.map((key) => {
      const shown = { capacity: readQuantity(capacity[key]), allocatable: readQuantity(allocatable[key]) };
      return [key, Object.fromEntries(Object.entries(shown).filter(([, count]) => count !== undefined))];
    }),
  );
}

/** A pool with publishCapacity. */
export interface PublishingPool {
  readonly pool: Pool;
  readonly createdAt: string;
  /** Whether the pool is derived from NADs. */
  readonly isDerived: boolean;
}

interface ChosenPools {
  readonly chosen: readonly Pool[];
  /** Names of the pools beyond the limit, which nodes do not show. */
  readonly leftOut: readonly string[];
}

/**
 * Chooses the pools whose capacity nodes show. Each pool adds a key to every node, so their number is limited. Pools that nodes already show
 * come first, then pools of administrators, then older pools.
 */
export function choosePools(
  pools: readonly PublishingPool[],
  nodes: readonly Pick<NodeRecord, 'shown'>[],
  limit: number,
): ChosenPools {
  const shown = new Set(nodes.flatMap((node) => [...node.shown.keys()]));
  const rankOf = ({ pool, createdAt, isDerived }: PublishingPool) =>
    [shown.has(capacityResource(pool.name)) ? 0 : 1, isDerived ? 1 : 0, createdAt, pool.name].join(' ');
  const ranked = pools
    .map((each) => ({ pool: each.pool, rank: rankOf(each) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ pool }) => pool);
  return { chosen: ranked.slice(0, limit), leftOut: ranked.slice(limit).map(({ name }) => name) };
}
