import { isCapacityResource, readQuantity } from '../api/capacity.js';
import { recordOf, recordsIn, textOf } from '../api/json.js';
import type { KubeObject } from '../api/meta.js';
import { NODES } from '../kube/resources.js';
import type { Watched } from '../kube/informers.js';
import { identityOf } from '../cluster/shrink.js';
import { hasNetwork } from '../ipam/core/pool-nodes.js';
import type { NodeTraits, Taint } from './eligible.js';

/** A node as far as shares go. */
export interface NodeRecord extends KubeObject {
  readonly traits: NodeTraits;
  /** By extended resource of ours: what it shows. */
  readonly shown: ReadonlyMap<string, Shown>;
}

/** What stands in a node's status; schedulers go by what is allocatable. Absent: the key is not there, or no number. */
export interface Shown {
  readonly capacity?: number;
  readonly allocatable?: number;
}

export const NODE_RECORDS: Watched<KubeObject, NodeRecord> = { resource: NODES, shrink: shrinkNodeRecord };

export function shrinkNodeRecord(node: KubeObject): NodeRecord {
  const { spec, status } = node as { spec?: unknown; status?: unknown };
  const { unschedulable, taints } = recordOf(spec);
  return {
    metadata: identityOf(node.metadata),
    traits: {
      name: node.metadata.name,
      labels: node.metadata.labels ?? {},
      unschedulable: unschedulable === true,
      taints: recordsIn(taints).map(readTaint).filter(keepsAway),
    },
    shown: shownIn(status),
  };
}

/** Whether it has the network. */
export function isEligible(node: NodeRecord, selector: Readonly<Record<string, string>> = {}): boolean {
  return hasNetwork(node, node.traits.labels, selector);
}

/** Heartbeats are many, and change nothing of this. */
export function sameNode(one: NodeRecord, other: NodeRecord): boolean {
  return stateOf(one) === stateOf(other);
}

function stateOf({ metadata, traits, shown }: NodeRecord): string {
  return JSON.stringify([metadata.uid, metadata.deletionTimestamp, traits, [...shown]]);
}

function readTaint({ key, value, effect }: Record<string, unknown>): Taint {
  return { key: textOf(key), value: textOf(value), effect: textOf(effect) };
}

function keepsAway({ effect }: Taint): boolean {
  return effect === 'NoSchedule' || effect === 'NoExecute';
}

function shownIn(status: unknown): Map<string, Shown> {
  const capacity = recordOf(recordOf(status).capacity);
  const allocatable = recordOf(recordOf(status).allocatable);
  const keys = [...Object.keys(capacity), ...Object.keys(allocatable)].filter(isCapacityResource);
  return new Map(
    keys.map((key) => {
      const shown = { capacity: readQuantity(capacity[key]), allocatable: readQuantity(allocatable[key]) };
      return [key, Object.fromEntries(Object.entries(shown).filter(([, count]) => count !== undefined))];
    }),
  );
}
