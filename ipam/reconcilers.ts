import { nadRightsFrom } from '../api/networks/nad-rights.js';
import { ControllerLoop, type Sync } from '../kube/controller-loop.js';
import type { EventRecorder } from '../kube/events.js';
import { WorkQueue } from '../kube/workqueue.js';
import type { IpamConfig } from '../process/config/config.js';
import type { ProcessContext } from '../process/context.js';
import type { Leadership } from '../process/leadership.js';
import { type KubeVirtControllerSource, watchKubeVirt } from '../cluster/kubevirt-controller.js';
import { type PersistentIPsGate, createPersistentIPsGate } from '../cluster/persistent-ips-gate.js';
import { BlockReconciler } from './blocks/block-reconciler.js';
import { UnreadableAddresses } from './claims/claim-leases.js';
import { RestoreHolds } from './claims/shown/restore-holds.js';
import { createClaimSync } from './claims/sync.js';
import { allClaimKeys, claimKeyOf, keysOfLease, keysOfNetworks as claimsOfNetworks } from './claims/triggers.js';
import { ClaimWaitList } from './claims/wait-list.js';
import type { IpamMetrics } from './metrics.js';
import { SegmentOverlapTracker } from './pools/segment-overlap.js';
import { createPoolsSync } from './pools/sync.js';
import { allPoolKeys, followPools, turnsOfPools } from './pools/triggers.js';
import type { Views } from './views.js';

/** There are few pools, and each is written at most once a second. */
const POOL_WORKERS = 4;
/** Each worker writes several blocks in parallel. */
const BLOCK_WORKERS = 2;

interface ReconcilersDependencies extends Pick<Leadership, 'whileLeading'> {
  readonly context: ProcessContext;
  readonly config: IpamConfig;
  readonly views: Views;
  readonly events: EventRecorder;
  readonly metrics: IpamMetrics;
}

/** The reconcilers of claims, pools and blocks: which changes queue which keys, and the workers of one term of leadership. */
export class Reconcilers {
  readonly gate: PersistentIPsGate;
  readonly kubevirt: KubeVirtControllerSource;
  readonly #deps: ReconcilersDependencies;
  readonly #blocks: BlockReconciler | undefined;
  readonly #overlaps: SegmentOverlapTracker;
  readonly #waiters: ClaimWaitList;
  readonly #restoreHolds: RestoreHolds;
  readonly #unreadable: UnreadableAddresses;
  /** Empty while another process leads. */
  #queues: Partial<Record<'claims' | 'pools' | 'blocks', WorkQueue>> = {};
  #loops: readonly ControllerLoop[] = [];

  constructor(deps: ReconcilersDependencies) {
    const { context, config, views } = deps;
    const { informers, clock } = context;
    const { watched, book, directory } = views;
    this.#deps = deps;
    this.#waiters = new ClaimWaitList((keys) => this.#add('claims', keys), deps.metrics.claims.setWaiting);
    this.gate = createPersistentIPsGate(config, informers, () => void this.#addAll());
    this.kubevirt = watchKubeVirt(informers, config.namespace, () => void this.#addAll());
    if (config.featureGates.nodeBlocks) this.#blocks = new BlockReconciler({ context, config, views, gate: this.gate });
    this.#overlaps = new SegmentOverlapTracker(directory, clock, (pools) => this.#add('pools', pools));
    this.#unreadable = new UnreadableAddresses(book, clock);
    this.#restoreHolds = new RestoreHolds({ claims: watched.claims.cache, book, directory, clock });
  }

  /** Queues keys when the views change. Call it once. */
  listen(): void {
    const { metrics } = this.#deps;
    const { watched, book, directory, users, usage } = this.#deps.views;
    const { pools, networks, claims } = watched;
    followPools({ pools, networks, claims, book, pods: users, directory, usage, cache: pools.cache }, (keys) =>
      this.#add('pools', keys),
    );
    // restore holds are updated first, so that no claim is woken for an address that is kept for another one
    directory.onChange((changed) => this.#restoreHolds.onNetworksChange(changed));
    claims.onChange((change) => this.#restoreHolds.onClaimChange(change));
    claims.onChange((change) => metrics.onClaimChange(change));
    book.onChange((change) => this.#restoreHolds.onLeaseChange(change));
    directory.onChange((changed) => this.#add('claims', claimsOfNetworks(changed, claims.cache)));
    claims.onChange((change) => this.#add('claims', claimKeyOf(change)));
    users.onChange((key) => this.#add('claims', [key]));
    book.onChange((change) => this.#add('claims', keysOfLease(change, this.#waiters)));
    book.onAddressFreed((space, address) => this.#add('claims', this.#waiters.claimsToWake(space, address)));
    this.#blocks?.watch((keys) => this.#add('blocks', keys));
    this.#blocks?.onChange((keys) => this.#add('pools', keys));
  }

  /** Keeps addresses for claims that show them without a lease, and counts the leases of all pools: with many, it takes seconds. */
  async prepare(): Promise<void> {
    await this.#restoreHolds.prepare();
    await this.#countLeases();
  }

  /** Begins a term of leadership. Resolves when all keys are queued, or when the signal aborts. */
  async begin(signal: AbortSignal): Promise<void> {
    const { config, views } = this.#deps;
    // all claims that waited in an earlier term are synced again
    this.#waiters.clear();
    const claims = this.#createLoop('claims', this.#createClaimSync(), config.claimWorkers);
    const turns = turnsOfPools(views.watched.pools.cache);
    const pools = this.#createLoop('pools', this.#createPoolsSync(), POOL_WORKERS, turns);
    const blocks = this.#blocks && this.#createLoop('blocks', this.#blocks.createSync(), BLOCK_WORKERS);
    this.#queues = { claims: claims.queue, pools: pools.queue, ...(blocks && { blocks: blocks.queue }) };
    this.#loops = [claims.loop, pools.loop, ...(blocks ? [blocks.loop] : [])];
    await this.#startLoops(this.#loops, signal);
  }

  /** Ends the term. Resolves after the last sync. */
  async end(): Promise<void> {
    this.#queues = {};
    const loops = this.#loops.map((loop) => loop.stop());
    this.#loops = [];
    await Promise.all(loops);
  }

  /** Call it when the process stops. */
  stop(): void {
    this.#restoreHolds.stop();
    this.#overlaps.stop();
  }

  #add(queue: 'claims' | 'pools' | 'blocks', keys: Iterable<string>): void {
    void this.#queues[queue]?.addAll(keys);
  }

  async #addAll(): Promise<void> {
    const { claims, pools, blocks } = this.#queues;
    const { watched, book } = this.#deps.views;
    await pools?.addAll(allPoolKeys(watched.pools.cache, watched.networks.cache), 'low');
    await blocks?.addAll(this.#blocks?.allPools() ?? [], 'low');
    await claims?.addAll(allClaimKeys(watched.claims.cache, book), 'low');
  }

  /** First, holds of addresses are rechecked, and the leases of pools whose spec has changed since {@link prepare} are counted. */
  async #startLoops(loops: readonly ControllerLoop[], signal: AbortSignal): Promise<void> {
    const haveHolds = await this.#restoreHolds.start(signal);
    await this.#countLeases(signal);
    if (!haveHolds || signal.aborted) return;
    for (const loop of loops) loop.start();
    await this.#addAll();
  }

  async #countLeases(signal?: AbortSignal): Promise<void> {
    const { watched, directory, usage } = this.#deps.views;
    for (const name of watched.pools.cache.keys())
      await usage.prepare(name, directory.pool(name), this.#deps.context.clock, signal);
  }

  #createLoop(of: string, sync: Sync, workers: number, groupOf?: (key: string) => string) {
    const { clock, random, log, metrics } = this.#deps.context;
    const options = { name: `ipam-${of}`, clock, metrics: metrics.kube };
    const queue = new WorkQueue({ ...options, random, workers, ...(groupOf && { groupOf }) });
    const whileLeading = this.#deps.whileLeading(sync);
    return { queue, loop: new ControllerLoop({ ...options, queue, workers, log, sync: whileLeading }) };
  }

  #createClaimSync(): Sync {
    const { context, config, views, events, metrics } = this.#deps;
    const { watched, book, directory, users, usage } = views;
    return createClaimSync({
      ...{ ...context, book, directory, events, claims: watched.claims.cache, pods: users },
      waitList: this.#waiters,
      restoreHolds: this.#restoreHolds,
      unreadable: this.#unreadable,
      ...(this.#blocks && { blocks: this.#blocks }),
      gate: this.gate,
      kubevirt: this.kubevirt,
      heldByStopped: (pool, family) => usage.stoppedOf(pool, family),
      maxStalenessMs: config.maxStalenessMs,
      stickyMAC: config.featureGates.stickyMAC,
      metrics: metrics.claims,
      latency: metrics.latency,
    });
  }

  #createPoolsSync(): Sync {
    const { context, config, views, events, metrics } = this.#deps;
    const { watched, book, directory, usage } = views;
    return createPoolsSync({
      ...{ ...context, book, directory, usage, events, pools: watched.pools.cache },
      overlaps: this.#overlaps,
      maxStalenessMs: config.maxStalenessMs,
      rightsOf: nadRightsFrom(config),
      ...(this.#blocks && { blocks: this.#blocks }),
      isGateOpen: () => this.gate.isOpen(),
      statusIntervalMs: config.poolStatusIntervalMs,
      metrics: metrics.pools,
    });
  }
}
