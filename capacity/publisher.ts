import type { Client } from '../kube/client.js';
import type { Clock } from '../kube/clock.js';
import { isNotFound, messageOf } from '../kube/errors.js';
import { forEachParallel } from '../kube/for-each-parallel.js';
import type { Logger } from '../kube/log.js';
import { NODES } from '../kube/resources.js';
import { mayHaveActed } from '../kube/errors.js';
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

export interface PublisherOptions {
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
  readonly #beliefs = new Map<string, Map<string, AdvertisedCapacity>>();
  readonly #offers = new Map<string, ReadonlyMap<string, Offer>>();
  /** When shares were last levelled, by extended resource. */
  readonly #evenAt = new Map<string, number>();
  /** Until then schedulers may see values of a former leader, so no value is raised. */
  readonly #calmAt: number;

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#calmAt = options.clock.now() + options.settleMs;
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
    this.#see(nodes, new Set(pools.map(({ resource }) => resource)));
    const changes = new Map<string, NodeChanges>();
    const change = (node: string, resource: string, count: number | null) => {
      const ofNode: NodeChanges = changes.get(node) ?? new Map<string, number | null>();
      changes.set(node, ofNode.set(resource, count));
    };
    const placed = new Map<string, string>();
    let isUnfinished = this.#options.clock.now() < this.#calmAt && pools.length > 0;
    for (const pool of pools) {
      const plan = this.#plan(pool, placed);
      for (const [kind, node] of plan.placed) placed.set(kind, placed.get(kind) ?? node);
      for (const [node, cap] of plan.caps) change(node, pool.resource, cap);
      this.#offers.set(pool.resource, plan.offers);
      if (plan.unfinished || pool.waitingPods > 0) isUnfinished = true;
    }
    this.#repair(nodes, pools, (node, resource, count) => {
      // planned values are correct already
      if (changes.get(node)?.has(resource) !== true) change(node, resource, count);
    });
    await this.#writeAll(changes, new Map(nodes.map(({ traits, metadata }) => [traits.name, metadata.uid])));
    return isUnfinished;
  }

  #see(nodes: readonly NodeRecord[], published: ReadonlySet<string>): void {
    const now = this.#options.clock.now();
    const names = new Set(nodes.map(({ traits }) => traits.name));
    const shownOnes = new Set<string>();
    for (const { shown } of nodes) for (const resource of shown.keys()) shownOnes.add(resource);
    for (const [resource, beliefs] of this.#beliefs) {
      for (const name of beliefs.keys()) if (!names.has(name)) beliefs.delete(name);
      if (shownOnes.has(resource) || published.has(resource)) continue;
      this.#beliefs.delete(resource);
      this.#offers.delete(resource);
      this.#evenAt.delete(resource);
    }
    const resources = new Set([...published, ...shownOnes]);
    for (const { traits, shown, metadata } of nodes) {
      for (const resource of resources) {
        this.#belief(resource, traits.name).observe(
          shown.get(resource)?.allocatable,
          metadata.resourceVersion ?? '',
          now,
        );
      }
    }
  }

  #belief(resource: string, node: string): AdvertisedCapacity {
    const beliefs = this.#beliefs.get(resource) ?? new Map<string, AdvertisedCapacity>();
    const known = beliefs.get(node);
    if (known !== undefined) return known;
    const belief = new AdvertisedCapacity(this.#options.settleMs);
    this.#beliefs.set(resource, beliefs.set(node, belief));
    return belief;
  }

  #plan(
    { resource, pool, budget, nodes, requested, waiting, unseen, waitingPods }: PoolDemand,
    placed: ReadonlyMap<string, string>,
  ) {
    const { clock, offerTimeoutMs, metrics } = this.#options;
    const now = clock.now();
    const eligible = new Set(nodes.map(({ name }) => name));
    const elsewhere = [...(this.#beliefs.get(resource) ?? [])].reduce(
      (sum, [name, belief]) =>
        eligible.has(name) ? sum : sum + Math.max(0, belief.highest(now) - (requested.get(name) ?? 0)),
      0,
    );
    const plan = planShares({
      budget,
      // no object spread: with one object per node and pool it doubles the time of a round
      nodes: nodes.map(({ name, requested, leaving, own, ordinary }): ShareNode => {
        const belief = this.#belief(resource, name);
        return { name, requested, leaving, own, ordinary, shown: belief.expected, most: belief.highest(now) };
      }),
      elsewhere: now < this.#calmAt ? Infinity : elsewhere,
      isDue: this.#isDue(resource, now),
      waiting: waiting.map((kind) => ({ ...kind, prefers: placed.get(kind.key) })),
      skippedGroups: unseen,
      offers: this.#offers.get(resource) ?? new Map(),
      now,
      offerTimeoutMs,
    });
    metrics.observed(pool.name, { free: Math.max(0, budget), waiting: waitingPods });
    return plan;
  }

  #isDue(resource: string, now: number): boolean {
    const isDue = now - (this.#evenAt.get(resource) ?? 0) >= REBALANCE_INTERVAL_MS;
    if (isDue) this.#evenAt.set(resource, now);
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
          change(traits.name, resource, this.#belief(resource, traits.name).expected ?? allocatable);
        }
      }
    }
  }

  /** @param uids of the nodes by name, so that a new node of the same name is not written */
  async #writeAll(
    changes: ReadonlyMap<string, NodeChanges>,
    uids: ReadonlyMap<string, string | undefined>,
  ): Promise<void> {
    const { signal } = this.#options;
    const failures: unknown[] = [];
    await forEachParallel(
      [...changes],
      MAX_PARALLEL_WRITES,
      async ([name, changed]) => {
        try {
          await this.#write({ name, uid: uids.get(name) }, changed);
        } catch (error) {
          failures.push(error);
        }
      },
      signal,
    );
    if (failures.length === 0 || signal.aborted) return;
    const [first] = failures;
    throw failures.length === 1
      ? first
      : new Error(`writing ${failures.length} nodes failed, the first with: ${messageOf(first)}`, { cause: first });
  }

  async #write({ name, uid }: { name: string; uid: string | undefined }, changes: NodeChanges): Promise<void> {
    const { client, clock, log, metrics, signal } = this.#options;
    const beliefs = [...changes].map(([resource, count]) => ({
      belief: this.#belief(resource, name),
      cap: count ?? 0,
    }));
    for (const { belief, cap } of beliefs) belief.beginWrite(cap, clock.now());
    const counts = Object.fromEntries([...changes].map(([key, count]) => [key, count === null ? null : String(count)]));
    const body = { metadata: { uid }, status: { capacity: counts, allocatable: counts } };
    const options = { subresource: 'status', signal };
    try {
      const written = await client.patch(NODES, { name }, { type: 'merge', body }, options);
      for (const { belief } of beliefs) belief.writeSucceeded(written.metadata.resourceVersion ?? '');
      metrics.written('done');
      log.debug({ node: name, counts }, 'wrote the free addresses of the node');
    } catch (error) {
      metrics.written('failed');
      if (!mayHaveActed(error)) for (const { belief } of beliefs) belief.writeRejected();
      // a deleted node needs no write
      if (!isNotFound(error)) throw error;
    }
  }
}
