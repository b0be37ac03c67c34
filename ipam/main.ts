import { EventRecorder } from '../kube/events.js';
import { ControllerLoop, type Sync } from '../kube/controller-loop.js';
import { WorkQueue } from '../kube/workqueue.js';
import type { IpamConfig } from '../process/config.js';
import type { ProcessContext } from '../process/context.js';
import { type PersistentIPsGate, createPersistentIPsGate } from '../cluster/persistent-ips-gate.js';
import { type KubeVirtControllerSource, watchKubeVirt } from '../cluster/kubevirt-controller.js';
import { Leadership, leaderIdentity } from '../process/leadership.js';
import type { Component } from '../process/component.js';
import type { AuditLog } from './audit/audit-log.js';
import { createAuditLog } from './audit/create-audit-log.js';
import { BlockReconciler } from './blocks/block-reconciler.js';
import { RestoreHolds } from './claims/restore-holds.js';
import { createClaimSync } from './claims/sync.js';
import {
  allClaimKeys,
  claimKeyOf,
  keysOfLease,
  keysOfNetworks as claimsOfNetworks,
  keysOfFreedAddress,
} from './claims/triggers.js';
import { UnhonouredClaims } from './claims/unhonoured-claims.js';
import { UnleasedAddresses } from './claims/unleased-addresses.js';
import { UnservedOwners } from './claims/unserved-owners.js';
import { ClaimWaitList } from './claims/wait-list.js';
import { type Collector, createCollector } from './collector/collector.js';
import { createCollectorReport } from './collector/report.js';
import { nadRightsFrom } from '../api/nad-rights.js';
import { IpamMetrics } from './metrics.js';
import { createPoolsSync } from './pools/sync.js';
import { allPoolKeys, followPools, turnsOfPools } from './pools/triggers.js';
import { ServedNetworksWriter } from './pools/served-networks-writer.js';
import { SegmentOverlapTracker } from './pools/segment-overlap-tracker.js';
import { createValidationWebhook } from './validation/webhook.js';
import { createIpamViews } from './views.js';

const NAME = 'holdfast-ipam';
/** There are few pools, and each is written at most once a second. */
const POOL_WORKERS = 4;
/** Each worker writes several blocks in parallel. */
const BLOCK_WORKERS = 2;

/**
 * Creates the process `holdfast ipam`. Every replica fills caches and serves admission reviews; only the leader writes.
 * @param identity unique among the candidates for leadership
 */
export function createIpam(context: ProcessContext, config: IpamConfig, identity = leaderIdentity()): Component {
  return new Ipam(context, config, identity);
}

/** The queues and workers of one term of leadership. */
interface Term {
  readonly claims: WorkQueue;
  readonly pools: WorkQueue;
  readonly blocks: WorkQueue | undefined;
  readonly loops: readonly ControllerLoop[];
}

class Ipam implements Component {
  readonly name = 'ipam';
  readonly #context: ProcessContext;
  readonly #config: IpamConfig;
  readonly #views;
  readonly #gate: PersistentIPsGate;
  readonly #kubevirt: KubeVirtControllerSource;
  readonly #events: EventRecorder;
  readonly #metrics: IpamMetrics;
  readonly #blocks: BlockReconciler | undefined;
  readonly #waiters = new ClaimWaitList((keys) => this.#addClaims(keys));
  readonly #restoreHolds: RestoreHolds;
  readonly #collector: Collector;
  readonly #overlaps: SegmentOverlapTracker;
  readonly #unhonoured: UnhonouredClaims;
  readonly #unservedOwners: UnservedOwners;
  readonly #unleased: UnleasedAddresses;
  readonly #servedNetworks: ServedNetworksWriter;
  readonly #validation: Component;
  readonly #leadership: Leadership;
  readonly #audit: AuditLog | undefined;
  #term: Term | undefined;

  constructor(shared: ProcessContext, config: IpamConfig, identity: string) {
    const { client, clock, random, metrics } = shared;
    const log = shared.log.child({ part: this.name });
    const context = { ...shared, log };
    this.#context = context;
    this.#config = config;
    this.#views = createIpamViews(shared);
    this.#metrics = new IpamMetrics(metrics, clock, config.maxDerivedPoolMetrics);
    this.#events = new EventRecorder({ client, component: NAME, clock, random, log, metrics: metrics.kube });
    this.#gate = createPersistentIPsGate(config, context.informers, () => this.#addAll());
    this.#kubevirt = watchKubeVirt(context.informers, config.namespace, () => this.#addAll());
    if (config.featureGates.nodeBlocks) {
      this.#blocks = new BlockReconciler({ context, config, views: this.#views, gate: this.#gate });
    }
    this.#collector = this.#createCollector();
    const { book, watched, directory, users } = this.#views;
    this.#unhonoured = new UnhonouredClaims({
      ...{ ...context, config, gate: this.#gate, directory, events: this.#events },
      ...{ claims: watched.claims.cache, pods: users },
    });
    this.#audit = createAuditLog(config, watched.leases, context);
    this.#overlaps = new SegmentOverlapTracker(directory, clock, (pools) => this.#addPools(pools));
    this.#unleased = new UnleasedAddresses({
      ...{ ...context, config, directory, book, events: this.#events },
      ...{ pods: watched.pods.cache, claims: watched.claims.cache, networks: watched.networks.cache },
      count: (addresses) => this.#metrics.setUnleased(addresses),
    });
    this.#unservedOwners = new UnservedOwners({ ...context, claims: watched.claims.cache, directory });
    this.#servedNetworks = new ServedNetworksWriter({ ...context, config, pools: watched.pools });
    this.#restoreHolds = new RestoreHolds({ claims: watched.claims.cache, book, directory, clock });
    this.#validation = createValidationWebhook(shared, config, {
      leases: book,
      pools: watched.pools.cache,
      networks: directory,
      rightsOf: nadRightsFrom(config),
    });
    this.#leadership = new Leadership({
      context,
      config,
      name: NAME,
      identity,
      startWork: (signal) => this.#beginTerm(signal),
      stopWork: () => this.#endTerm(),
    });
    this.#listen();
  }

  async start(): Promise<void> {
    this.#context.informers.start();
    this.#leadership.start();
    await this.#validation.start();
  }

  ready(): string | undefined {
    return this.#context.informers.ready() ?? this.#validation.ready?.();
  }

  notice(): string | undefined {
    return this.#kubevirt.controller().problem;
  }

  async stop(): Promise<void> {
    this.#overlaps.stop();
    await Promise.all([this.#leadership.stop(), this.#validation.stop()]);
    await this.#events.flush();
  }

  #createCollector(): Collector {
    const { client, clock, log, metrics } = this.#context;
    const { watched, book, directory, users } = this.#views;
    return createCollector({
      book,
      client,
      claims: watched.claims,
      pods: watched.pods,
      users,
      directory,
      clock,
      report: createCollectorReport({ log, metrics, events: this.#events }),
      gate: this.#gate,
      config: this.#config,
    });
  }

  #listen(): void {
    const { watched, book, directory, users, usage } = this.#views;
    const { pools, networks, claims } = watched;
    followPools({ pools, networks, claims, book, pods: users, directory, usage, cache: pools.cache }, (keys) =>
      this.#addPools(keys),
    );
    // restore holds are updated first, so that no claim is woken for an address that is kept for another one
    directory.onChange((changed) => this.#restoreHolds.onNetworksChange(changed));
    claims.onChange((change) => this.#restoreHolds.onClaimChange(change));
    claims.onChange((change) => this.#metrics.onClaimChange(change));
    book.onChange((change) => this.#restoreHolds.onLeaseChange(change));
    directory.onChange((changed) => this.#addClaims(claimsOfNetworks(changed, claims.cache)));
    claims.onChange((change) => this.#addClaims(claimKeyOf(change)));
    users.onChange((key) => this.#addClaims([key]));
    book.onChange((change) => this.#addClaims(keysOfLease(change, this.#waiters)));
    book.onAddressFreed((space, address) => this.#addClaims(keysOfFreedAddress(space, address, this.#waiters)));
    this.#blocks?.watch((keys) => this.#addBlocks(keys));
    this.#blocks?.onChange((keys) => this.#addPools(keys));
  }

  #addPools(keys: Iterable<string>): void {
    void this.#term?.pools.addAll(keys);
  }

  #addClaims(keys: Iterable<string>): void {
    void this.#term?.claims.addAll(keys);
  }

  #addBlocks(pools: Iterable<string>): void {
    void this.#term?.blocks?.addAll(pools);
  }

  #addAll(): void {
    if (this.#term === undefined) return;
    const { watched, book } = this.#views;
    this.#addPools(allPoolKeys(watched.pools.cache, watched.networks.cache));
    this.#addClaims(allClaimKeys(watched.claims.cache, book));
    this.#addBlocks(this.#blocks?.allPools() ?? []);
  }

  #beginTerm(signal: AbortSignal): void {
    // all claims that waited in an earlier term are synced again
    this.#waiters.clear();
    const claims = this.#createLoop('claims', this.#createClaimSync(), this.#config.claimWorkers);
    const turns = turnsOfPools(this.#views.watched.pools.cache);
    const pools = this.#createLoop('pools', this.#createPoolsSync(), POOL_WORKERS, turns);
    const blocks = this.#blocks && this.#createLoop('blocks', this.#blocks.createSync(), BLOCK_WORKERS);
    const loops = [claims.loop, pools.loop, ...(blocks ? [blocks.loop] : [])];
    this.#term = { claims: claims.queue, pools: pools.queue, blocks: blocks?.queue, loops };
    this.#metrics.begin();
    this.#audit?.start();
    void this.#startLoops(loops, signal);
    this.#collector.start();
    this.#unhonoured.start();
    this.#unservedOwners.start();
    this.#unleased.start();
    this.#servedNetworks.start();
    this.#addAll();
  }

  /** First, addresses are kept for claims that show them without a lease, and the leases of all pools are counted. */
  async #startLoops(loops: readonly ControllerLoop[], signal: AbortSignal): Promise<void> {
    const { watched, directory, usage } = this.#views;
    const haveHolds = await this.#restoreHolds.start(signal);
    for (const name of watched.pools.cache.keys())
      await usage.prepare(name, directory.pool(name), this.#context.clock, signal);
    if (haveHolds && !signal.aborted) for (const loop of loops) loop.start();
  }

  async #endTerm(): Promise<void> {
    const term = this.#term;
    this.#term = undefined;
    this.#restoreHolds.stop();
    const loops = (term?.loops ?? []).map((loop) => loop.stop());
    const reports = [this.#unhonoured, this.#unservedOwners, this.#unleased].map((report) => report.stop());
    await Promise.all([...loops, this.#collector.stop(), this.#servedNetworks.stop(), ...reports, this.#audit?.stop()]);
    this.#metrics.end();
  }

  #createLoop(of: string, sync: Sync, workers: number, groupOf?: (key: string) => string) {
    const { clock, random, log, metrics } = this.#context;
    const options = { name: `ipam-${of}`, clock, metrics: metrics.kube };
    const queue = new WorkQueue({ ...options, random, workers, ...(groupOf && { groupOf }) });
    const whileLeading = this.#leadership.whileLeading(sync);
    return { queue, loop: new ControllerLoop({ ...options, queue, workers, log, sync: whileLeading }) };
  }

  #createClaimSync(): Sync {
    const { client, clock, log } = this.#context;
    const { watched, book, directory, users, usage } = this.#views;
    return createClaimSync({
      claims: watched.claims.cache,
      book,
      directory,
      pods: users,
      client,
      waitList: this.#waiters,
      restoreHolds: this.#restoreHolds,
      ...(this.#blocks && { blocks: this.#blocks }),
      gate: this.#gate,
      kubevirt: this.#kubevirt,
      heldByStopped: (pool, family) => usage.stoppedOf(pool, family),
      maxStalenessMs: this.#config.maxStalenessMs,
      stickyMAC: this.#config.featureGates.stickyMAC,
      clock,
      events: this.#events,
      metrics: this.#metrics.claims,
      latency: this.#metrics.latency,
      log,
    });
  }

  #createPoolsSync(): Sync {
    const { client, clock, random, log } = this.#context;
    const { watched, book, directory, usage } = this.#views;
    return createPoolsSync({
      client,
      pools: watched.pools.cache,
      directory,
      book,
      usage,
      overlaps: this.#overlaps,
      maxStalenessMs: this.#config.maxStalenessMs,
      rightsOf: nadRightsFrom(this.#config),
      ...(this.#blocks && { blocks: this.#blocks }),
      isGateOpen: () => this.#gate.isOpen(),
      events: this.#events,
      clock,
      random,
      statusIntervalMs: this.#config.poolStatusIntervalMs,
      metrics: this.#metrics.pools,
      log,
    });
  }
}
