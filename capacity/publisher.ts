import { type ObjectMeta, newerOf } from '../api/meta.js';
import type { Client } from '../kube/client.js';
import type { Clock } from '../kube/clock.js';
import { isConflict, isNotFound, mayHaveActed, messageOf } from '../kube/errors.js';
import { forEachParallel } from '../kube/run-in-slices.js';
import type { Logger } from '../kube/log.js';
import { NODES } from '../kube/resources.js';
import { AdvertisedCapacity } from './advertised-capacity.js';
import type { CapacityMetrics } from './metrics.js';
import type { NodeRecord } from './node-record.js';
import { type PoolDemand, type CapacityInputs, observeDemand } from './observe.js';
import type { Offer } from './offers.js';
import { type ShareNode, planShares } from './shares.js';

/** Interval in which unused addresses are distributed even if no node needs them. */
const REBALANCE_INTERVAL_MS = 10_000;
/** If there are too many groups of pending pods, other groups are examined after this many offer timeouts. */
const OFFER_TIMEOUTS_PER_TURN = 16;
/** The number of concurrent writes. */
const MAX_PARALLEL_WRITES = 8;

interface PublisherOptions {
  readonly client: Pick<Client, 'patch'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<CapacityMetrics, 'observed' | 'written'>;
  readonly settleMs: number;
  readonly offerTimeoutMs: number;
  /** After its abort another leader may publish, so nothing is written. */
  readonly signal: AbortSignal;
}

/** New values by extended resource; null removes the key. */
type NodeChanges = Map<string, number | null>;

/** Shows the free addresses on nodes. A round observes everything, plans, and writes each node at most once. */
export class Publisher {
  readonly #options: PublisherOptions;
  /** By extended resource and node. */
  readonly #advertised = new Map<string, Map<string, AdvertisedCapacity>>();
  readonly #offers = new Map<string, ReadonlyMap<string, Offer>>();
  /** The resourceVersions after the last writes, by node: the watch may not show them yet. */
  readonly #versions = new Map<string, string>();
  /** When shares were last levelled, by extended resource. */
  readonly #rebalancedAt = new Map<string, number>();
  /** Until then schedulers may see values of a former leader, so no value is raised. */
  readonly #settledAt: number;

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#settledAt = options.clock.now() + options.settleMs;
  }

  /**
   * @returns whether another round is due soon even without a change
   * @throws {Error} if a write of a node failed, after all nodes have been tried
   */
  async publish(inputs: CapacityInputs): Promise<boolean> {
    const { nodes } = inputs;
    const pools = observeDemand(
      inputs,
      Math.floor(inputs.now / (OFFER_TIMEOUTS_PER_TURN * this.#options.offerTimeoutMs)),
    );
    this.#observe(nodes, new Set(pools.map(({ resource }) => resource)));
    const changes = new Map<string, NodeChanges>();
    const change = (node: string, resource: string, count: number | null) => {
      const ofNode: NodeChanges = changes.get(node) ?? new Map<string, number | null>();
      changes.set(node, ofNode.set(resource, count));
    };
    const nodeByGroup = new Map<string, string>();
    let isUnfinished = this.#options.clock.now() < this.#settledAt && pools.length > 0;
    for (const pool of pools) {
      const plan = this.#plan(pool, nodeByGroup);
      for (const [group, node] of plan.nodeByGroup) nodeByGroup.set(group, nodeByGroup.get(group) ?? node);
      for (const [node, capacity] of plan.capacities) change(node, pool.resource, capacity);
      this.#offers.set(pool.resource, plan.offers);
      if (plan.isUnfinished || pool.waitingPods > 0) isUnfinished = true;
    }
    this.#repair(nodes, pools, (node, resource, count) => {
      // planned values are correct already
      if (changes.get(node)?.has(resource) !== true) change(node, resource, count);
    });
    const metadata = new Map(nodes.map((node) => [node.traits.name, node.metadata]));
    for (const name of this.#versions.keys()) if (!metadata.has(name)) this.#versions.delete(name);
    const hasConflict = await this.#writeAll(changes, metadata);
    return isUnfinished || hasConflict;
  }

  #observe(nodes: readonly NodeRecord[], published: ReadonlySet<string>): void {
    const now = this.#options.clock.now();
    const names = new Set(nodes.map(({ traits }) => traits.name));
    const shownResources = new Set<string>();
    for (const { shown } of nodes) for (const resource of shown.keys()) shownResources.add(resource);
    for (const [resource, byNode] of this.#advertised) {
      for (const name of byNode.keys()) if (!names.has(name)) byNode.delete(name);
      if (shownResources.has(resource) || published.has(resource)) continue;
      this.#advertised.delete(resource);
      this.#offers.delete(resource);
      this.#rebalancedAt.delete(resource);
    }
    const resources = new Set([...published, ...shownResources]);
    for (const { traits, shown, metadata } of nodes) {
      for (const resource of resources) {
        this.#advertisedOf(resource, traits.name).observe(
          shown.get(resource)?.allocatable,
          metadata.resourceVersion ?? '',
          now,
        );
      }
    }
  }

  #advertisedOf(resource: string, node: string): AdvertisedCapacity {
    const byNode = this.#advertised.get(resource) ?? new Map<string, AdvertisedCapacity>();
    const known = byNode.get(node);
    if (known !== undefined) return known;
    const advertised = new AdvertisedCapacity(this.#options.settleMs);
    this.#advertised.set(resource, byNode.set(node, advertised));
    return advertised;
  }

  #plan(
    { resource, pool, budget, nodes, requested, waiting, skippedGroups, waitingPods }: PoolDemand,
    nodeByGroup: ReadonlyMap<string, string>,
  ) {
    const { clock, offerTimeoutMs, metrics } = this.#options;
    const now = clock.now();
    const eligible = new Set(nodes.map(({ name }) => name));
    const shownElsewhere = [...(this.#advertised.get(resource) ?? [])].reduce(
      (sum, [name, advertised]) =>
        eligible.has(name) ? sum : sum + Math.max(0, advertised.highest(now) - (requested.get(name) ?? 0)),
      0,
    );
    const plan = planShares({
      budget,
      // no object spread: with one object per node and pool it doubles the time of a round
      nodes: nodes.map(({ name, requested, leavingRequests, ownFree, isUntainted }): ShareNode => {
        const advertised = this.#advertisedOf(resource, name);
        return {
          name,
          requested,
          leavingRequests,
          ownFree,
          isUntainted,
          expected: advertised.expected,
          highest: advertised.highest(now),
        };
      }),
      shownElsewhere: now < this.#settledAt ? Infinity : shownElsewhere,
      isRebalanceDue: this.#isRebalanceDue(resource, now),
      waiting: waiting.map((group) => ({ ...group, preferredNode: nodeByGroup.get(group.key) })),
      skippedGroups,
      offers: this.#offers.get(resource) ?? new Map(),
      now,
      offerTimeoutMs,
    });
    metrics.observed(pool.name, { free: Math.max(0, budget), waiting: waitingPods });
    return plan;
  }

  #isRebalanceDue(resource: string, now: number): boolean {
    const isDue = now - (this.#rebalancedAt.get(resource) ?? 0) >= REBALANCE_INTERVAL_MS;
    if (isDue) this.#rebalancedAt.set(resource, now);
    return isDue;
  }

  /** Corrects values that other software has changed, or a former leader has left. */
  #repair(
    nodes: readonly NodeRecord[],
    pools: readonly PoolDemand[],
    change: (node: string, resource: string, count: number | null) => void,
  ): void {
    const wanted = new Map(
      pools.map(({ resource, nodes: eligible }) => [resource, new Set(eligible.map(({ name }) => name))]),
    );
    for (const { traits, shown } of nodes) {
      for (const [resource, { capacity, allocatable }] of shown) {
        if (wanted.get(resource)?.has(traits.name) !== true) change(traits.name, resource, null);
        else if (capacity !== allocatable && allocatable !== undefined) {
          // makes both values equal: the planned value, else the current one
          change(traits.name, resource, this.#advertisedOf(resource, traits.name).expected ?? allocatable);
        }
      }
    }
  }

  /** @returns whether a node was changed meanwhile by others, so that it was not written */
  async #writeAll(changes: ReadonlyMap<string, NodeChanges>, nodes: ReadonlyMap<string, ObjectMeta>): Promise<boolean> {
    const { signal } = this.#options;
    const failures: unknown[] = [];
    let hasConflict = false;
    await forEachParallel(
      [...changes],
      MAX_PARALLEL_WRITES,
      async ([name, changed]) => {
        try {
          await this.#write(nodes.get(name) ?? { name }, changed);
        } catch (error) {
          this.#versions.delete(name);
          if (isConflict(error)) hasConflict = true;
          else failures.push(error);
        }
      },
      signal,
    );
    if (failures.length === 0 || signal.aborted) return hasConflict;
    const [first] = failures;
    throw failures.length === 1
      ? first
      : new Error(`writing ${failures.length} nodes failed, the first with: ${messageOf(first)}`, { cause: first });
  }

  /** A write without an answer may arrive late, and must not replace a later one: it names the version of the node. */
  async #write({ name, uid, resourceVersion: seen = '' }: ObjectMeta, changes: NodeChanges): Promise<void> {
    const { client, clock, log, metrics, signal } = this.#options;
    const writes = [...changes].map(([resource, count]) => ({
      advertised: this.#advertisedOf(resource, name),
      capacity: count ?? 0,
    }));
    for (const { advertised, capacity } of writes) advertised.beginWrite(capacity, clock.now());
    const counts = Object.fromEntries([...changes].map(([key, count]) => [key, count === null ? null : String(count)]));
    const resourceVersion = newerOf(this.#versions.get(name) ?? '', seen);
    const body = { metadata: { uid, resourceVersion }, status: { capacity: counts, allocatable: counts } };
    const options = { subresource: 'status', signal };
    try {
      const { metadata } = await client.patch(NODES, { name }, { type: 'merge', body }, options);
      this.#versions.set(name, metadata.resourceVersion ?? '');
      for (const { advertised } of writes) advertised.writeSucceeded(metadata.resourceVersion ?? '');
      metrics.written('done');
      log.debug({ node: name, counts }, 'wrote the free addresses of the node');
    } catch (error) {
      metrics.written('failed');
      if (!mayHaveActed(error)) for (const { advertised } of writes) advertised.writeRejected();
      // a deleted node needs no write
      if (!isNotFound(error)) throw error;
    }
  }
}
