import { setMaxListeners } from 'node:events';
import { ControllerLoop, type SyncResult } from '../kube/controller-loop.js';
import { WorkQueue } from '../kube/workqueue.js';
import type { CapacityConfig } from '../process/config/config.js';
import type { Component, ProcessContext } from '../process/context.js';
import { type ElectedContext, type ElectedWork, createElectedComponent } from '../process/elected-component.js';
import type { Pool } from '../addressing/pool/pool.js';
import { choosePools } from './node-record.js';
import { createCapacityMetrics } from './metrics.js';
import { Publisher } from './publisher.js';
import { CapacityCaches } from './capacity-caches.js';

const NAME = 'capacity';
/** The only key of the work queue. */
const ROUND = 'round';
/** Delay that collects changes which come together. */
const BATCH_MS = 50;
/** How many pools a warning names. */
const MAX_NAMED_POOLS = 5;
/** Interval of rounds without a change. */
const RESYNC_MS = 10_000;

/** Shows the free addresses of pools on nodes, as extended resources that the scheduler counts. */
export function createCapacity(context: ProcessContext, config: CapacityConfig): Component {
  return createElectedComponent({ name: NAME, context, config }, (elected) => new Capacity(elected, config));
}

interface LeadershipTerm {
  readonly queue: WorkQueue;
  readonly loop: ControllerLoop;
}

class Capacity implements ElectedWork {
  readonly #context: ElectedContext;
  readonly #config: CapacityConfig;
  readonly #sources: CapacityCaches;
  readonly #metrics;
  #term: LeadershipTerm | undefined;
  #roundAt = -Infinity;
  #measured: ReadonlySet<string> = new Set();
  /** The pools in the last warning. */
  #leftOut = '';

  constructor(context: ElectedContext, config: CapacityConfig) {
    this.#context = context;
    this.#config = config;
    this.#metrics = createCapacityMetrics(context.metrics);
    this.#sources = new CapacityCaches({
      context,
      hasNodeBlocks: config.featureGates.nodeBlocks,
      onChange: () => this.#look(),
    });
  }

  start(): Promise<void> {
    this.#sources.start();
    return Promise.resolve();
  }

  async stop(ended: Promise<void>): Promise<void> {
    await ended;
    await this.#sources.stop();
  }

  /** Starts a round soon, but not before the publish interval since the last round is over. */
  #look(): void {
    const { clock } = this.#context;
    const pause = this.#roundAt + this.#config.publishIntervalMs - clock.now();
    this.#term?.queue.addAfter(ROUND, Math.max(BATCH_MS, pause));
  }

  startWork(signal: AbortSignal): void {
    // every pending request listens to the signal, which Node would report as a leak
    setMaxListeners(0, signal);
    const { client, clock, random, log, metrics } = this.#context;
    const { settleMs, offerTimeoutMs } = this.#config;
    const publisher = new Publisher({ client, clock, log, metrics: this.#metrics, settleMs, offerTimeoutMs, signal });
    const queue = new WorkQueue({ name: NAME, clock, random, metrics: metrics.kube, baseMs: 500, maxMs: 30_000 });
    const loop = new ControllerLoop({
      name: NAME,
      queue,
      workers: 1,
      sync: this.#context.whileLeading(() => this.#round(publisher)),
      log,
      clock,
      metrics: metrics.kube,
      invalidRetryMs: 5_000,
    });
    this.#term = { queue, loop };
    loop.start();
    this.#look();
  }

  async stopWork(): Promise<void> {
    const term = this.#term;
    this.#term = undefined;
    await term?.loop.stop();
    this.#metrics.clear();
  }

  async #round(publisher: Publisher): Promise<SyncResult> {
    const sources = this.#sources;
    const pools = this.#choose();
    // until all caches have synced, nodes stay unchanged
    if (!sources.followLeasesOf(pools)) return { requeueAfterMs: RESYNC_MS };
    const { clock } = this.#context;
    this.#roundAt = clock.now();
    const { nodes, pods, inventory } = sources;
    const isUnfinished = await publisher.publish({
      pools,
      nodes,
      pods,
      inventory,
      blocksOf: (pool) => sources.blocksOf(pool),
      now: clock.wall(),
      maxStalenessMs: this.#config.maxStalenessMs,
      attachedBefore: clock.now() - this.#config.settleMs,
    });
    this.#forgetMetrics(new Set(pools.map(({ name }) => name)));
    return { requeueAfterMs: isUnfinished ? this.#config.publishIntervalMs : RESYNC_MS };
  }

  #choose(): readonly Pool[] {
    if (!this.#config.featureGates.publishCapacity) return [];
    const most = this.#config.maxPublishedPools;
    const { chosen, leftOut } = choosePools(this.#sources.publishingPools(), this.#sources.nodes, most);
    this.#metrics.leftOut(leftOut.length);
    const names = leftOut.slice(0, MAX_NAMED_POOLS).join(', ');
    if (names !== '' && names !== this.#leftOut) {
      this.#context.log.warn(
        { pools: leftOut.length },
        `AddressPools ${names} are not published, because --max-published-pools is ${most}: remove publishCapacity from pools that do not need it, or raise the limit`,
      );
    }
    this.#leftOut = names;
    return chosen;
  }

  #forgetMetrics(published: ReadonlySet<string>): void {
    for (const pool of this.#measured) if (!published.has(pool)) this.#metrics.forget(pool);
    this.#measured = published;
  }
}
