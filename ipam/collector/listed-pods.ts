import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { type KubeObject, objectKey } from '../../api/meta.js';
import { COMPONENT_LABEL, type Pod, staticPodUidOf } from '../../api/pod.js';
import type { Lister } from '../../kube/informers/cache.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import { PODS } from '../../kube/resources.js';
import type { PodIdentity, PodOnNode } from './leak-kind.js';

export interface ListedPodsDeps {
  readonly client: Pick<Client, 'listAs'>;
  readonly agentNamespace: string;
  readonly nodes: { readonly cache: Pick<Lister<KubeObject>, 'get'>; readonly hasSynced: boolean };
  readonly clock: Pick<Clock, 'now'>;
}

/** Lists of one round: 8 a second at most. Up to so many nodes are listed in every round. */
export const MAX_NODES_PER_ROUND = 250;
/** The rest is for nodes whose turn it is, so that tenants who make others urgent do not stop it. */
const MAX_URGENT_NODES = 200;
/** A gone node is listed again when the time that it has been gone has grown by this factor: a tenant can keep its pods by finalizers for ever. */
const GONE_TIME_GROWTH = 1.25;
const MAX_PARALLEL = 8;

/** By `namespace/name`. */
type PodsOfNode = ReadonlyMap<string, PodIdentity> | 'agent';

interface NodeTimes {
  /** When the pods of the node were last asked for, in ms of the clock. */
  askedAt: number;
  /** When the node was first seen not to exist; undefined if it exists. */
  readonly goneSince: number | undefined;
}

/**
 * The pods of the nodes whose leases are compared in this round. ipam watches no ordinary pods: agents search the leases of their node. It lists the pods of the
 * nodes that are gone soon, and those of the others in turns, because an agent may be missing. With an agent on the node, only that knows
 * whether the containers of a pod that is gone still run.
 */
export class ListedPods {
  readonly #deps: ListedPodsDeps;
  /** The nodes with leases of pods. */
  #times: ReadonlyMap<string, NodeTimes> = new Map();
  /** By node, those of this round. */
  #pods = new Map<string, PodsOfNode>();

  constructor(deps: ListedPodsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the pod with this key; undefined if it is not on the node. `unknown`: the node was not listed in this round. The pod of a lease that names no node
   * counts as missing: only a live read knows it.
   */
  find(key: string, node: string | undefined): PodOnNode {
    if (node === undefined) return undefined;
    const pods = this.#pods.get(node) ?? 'unknown';
    return typeof pods === 'string' ? pods : pods.get(key);
  }

  /**
   * Lists the pods of some nodes. A node whose list fails is unknown in this round.
   * @param leases were known before, because a pod exists before its lease does
   * @param suspects nodes with leases that looked leaked in the last list of their pods
   */
  async round(leases: readonly LeaseRecord[], suspects: ReadonlySet<string>, signal?: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const listed = new Map<string, PodsOfNode>();
    this.#pods = listed;
    const now = clock.now();
    this.#times = this.#timesOf(leases, now);
    const list = async ([node, times]: [string, NodeTimes]) => {
      times.askedAt = clock.now();
      const pods = await this.#list(node, signal).catch(() => undefined);
      if (pods !== undefined) listed.set(node, pods);
    };
    await forEachParallel(this.#choose(suspects, now), MAX_PARALLEL, list, signal);
  }

  #timesOf(leases: readonly LeaseRecord[], now: number): ReadonlyMap<string, NodeTimes> {
    const found = new Map<string, NodeTimes>();
    for (const { owner, node } of leases) {
      if (owner?.kind !== 'Pod' || node === undefined || found.has(node)) continue;
      const { askedAt = 0, goneSince = now } = this.#times.get(node) ?? {};
      found.set(node, { askedAt, goneSince: this.#isGone(node) ? goneSince : undefined });
    }
    return found;
  }

  /** Chooses the urgent nodes, then the others; of both those first that were not listed for longest, so that none waits for ever. */
  #choose(suspects: ReadonlySet<string>, now: number): readonly [string, NodeTimes][] {
    const inTurn = [...this.#times].sort(([, a], [, b]) => a.askedAt - b.askedAt);
    const isDue = ({ askedAt, goneSince }: NodeTimes) =>
      goneSince !== undefined && now - goneSince >= (askedAt - goneSince) * GONE_TIME_GROWTH;
    const urgent = inTurn.filter(([node, times]) => suspects.has(node) || isDue(times)).slice(0, MAX_URGENT_NODES);
    return [...new Set([...urgent, ...inTurn])].slice(0, MAX_NODES_PER_ROUND);
  }

  #isGone(node: string): boolean {
    const { cache, hasSynced } = this.#deps.nodes;
    return hasSynced && cache.get(node) === undefined;
  }

  /** From the cache of the API server, which indexes pods by node: a list only chooses what is read live. */
  async #list(node: string, signal: AbortSignal | undefined): Promise<PodsOfNode> {
    const fieldSelector = `spec.nodeName=${node}`;
    const options = { fieldSelector, resourceVersion: '0', metadataOnly: true, signal };
    const { client, agentNamespace } = this.#deps;
    const read = (pod: Pod) => ({ identity: identityOf(pod, node), isOfAgent: isAgent(pod, agentNamespace) });
    const { items } = await client.listAs(PODS, read, options);
    return items.some(({ isOfAgent }) => isOfAgent) ? 'agent' : new Map(items.map(({ identity }) => identity));
  }
}

/** Tenants have no rights in that namespace. */
function isAgent({ metadata }: Pod, agentNamespace: string): boolean {
  return metadata.namespace === agentNamespace && metadata.labels?.[COMPONENT_LABEL] === 'agent';
}

function identityOf(pod: Pod, node: string): [string, PodIdentity] {
  const { metadata } = pod;
  const staticUid = staticPodUidOf({ metadata, spec: { nodeName: node } });
  return [objectKey(pod), { metadata: { uid: metadata.uid ?? '' }, ...(staticUid !== undefined && { staticUid }) }];
}
