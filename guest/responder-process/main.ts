import { joinKey } from '../../api/meta.js';
import { createPoolDirectory } from '../../addressing/directory/create-directory.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { EventRecorder } from '../../kube/events.js';
import type { Component, ProcessContext } from '../../process/context.js';
import type { Logger } from '../../kube/log.js';
import { PeriodicTask } from '../../process/periodic-task.js';
import type { ResponderConfig } from '../../process/config/guest-config.js';
import { responderNames } from '../responder-manager/objects.js';
import { RememberedGuests } from '../layer2-guests.js';
import { runInSlices } from '../../kube/run-in-slices.js';
import { Freshness, LiveReads, type TableStart } from './freshness.js';
import { type Responder, helperConfig } from './protocol.js';
import { LeaseProbes } from './lease-probes.js';
import { leasedAddresses } from '../leased-addresses.js';
import { createResponderMetrics } from './metrics.js';
import { Reports } from './reports.js';
import { type HelperObservation, HelperSession } from './session.js';
import { type GuestTable, type TableCaches, buildPoolTable } from './table.js';
import type { AddressLease } from '../../api/address-lease.js';
import { ADDRESS_POOL_WATCH, CLAIM_INDEXES, CLAIM_WATCH, NAD_WATCH } from '../../cluster/watch-specs.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { NETWORK_INDEXES } from '../../addressing/directory/affected.js';
import type { InformerRegistry, WatchSpec } from '../../kube/informers.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { GUEST_VMIS } from '../watch-specs.js';

const NAME = 'holdfast-responder';
/** Between two messages about the age of the table. */
const REFRESH_MS = 1_000;
/** Collects changes that come together. */
const BATCH_MS = 50;
/** The pause after a table, as a multiple of the time that it took: a large table must not fill the process. */
const PAUSE_FACTOR = 10;
/** The longest pause, as a part of the longest time for which a table may be used: a large table must not get stale. */
const MAX_PAUSE_PART = 1 / 5;
/** The pause between two live reads, as a part of the longest time for which a table may be used: a late one must not make it stale. */
const LIVE_READ_PART = 1 / 3;

/** Answers the guests of one pool: keeps the table of holdfast-packets current. All responders of a pool do the same. */
export function createResponder(context: ProcessContext, config: ResponderConfig): Component {
  return new ResponderProcess(context, config);
}

class ResponderProcess implements Component {
  readonly name = 'responder';
  readonly #context: ProcessContext;
  readonly #config: ResponderConfig;
  readonly #watched;
  readonly #directory: PoolDirectory;
  readonly #caches: TableCaches;
  readonly #freshness: Freshness;
  readonly #session: HelperSession;
  readonly #events: EventRecorder;
  readonly #reports: Reports;
  readonly #metrics;
  readonly #refresh: PeriodicTask;
  readonly #liveReads: PeriodicTask;
  readonly #stopping = new AbortController();
  #table: GuestTable | undefined;
  /** Set while an update is scheduled or runs. */
  #cancelUpdate: (() => void) | undefined;
  #updatedAt = 0;
  #pauseMs = 0;

  constructor(shared: ProcessContext, config: ResponderConfig) {
    const context = { ...shared, log: shared.log.child({ part: this.name }) };
    const { client, clock, random, log, metrics, informers } = context;
    this.#context = context;
    this.#config = config;
    this.#watched = responderWatches(informers, config);
    const { claims, vmis, leases, networks } = this.#watched;
    this.#directory = createPoolDirectory(this.#watched, clock);
    const caches = { claims: claims.cache, vmis: vmis.cache, networks: networks.cache, directory: this.#directory };
    const remembered = new RememberedGuests(caches);
    remembered.follow({ claims, directory: this.#directory });
    this.#caches = { ...caches, leases: leases.cache, remembered };
    const { maxStalenessMs, pool } = config;
    const liveReads = new LiveReads({ client, clock, log, pool });
    this.#freshness = new Freshness([...Object.values(this.#watched), liveReads], maxStalenessMs, clock);
    this.#metrics = createResponderMetrics(metrics, pool);
    this.#events = new EventRecorder({ client, component: NAME, clock, random, log, metrics: metrics.kube });
    this.#session = new HelperSession({
      socket: config.packetSocket,
      clock,
      random,
      log,
      onReport: (report) => this.#receive(report),
    });
    this.#reports = new Reports({ events: this.#events, clock, session: this.#session });
    this.#probeLeases(log);
    this.#refresh = new PeriodicTask({ clock, pauseMs: REFRESH_MS, run: () => this.#tick() });
    const pauseMs = maxStalenessMs * LIVE_READ_PART;
    this.#liveReads = new PeriodicTask({ clock, pauseMs, run: (signal) => liveReads.read(signal) });
    for (const informer of Object.values(this.#watched)) informer.onChange(() => this.#changed());
  }

  async start(): Promise<void> {
    const { informers } = this.#context;
    informers.start();
    this.#liveReads.start();
    this.#session.start();
    await informers.synced();
    this.#changed();
    this.#refresh.start();
  }

  ready(): string | undefined {
    return this.#context.informers.ready() ?? this.#poolProblem() ?? this.#session.problem;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#cancelUpdate?.();
    await Promise.all([this.#refresh.stop(), this.#liveReads.stop(), this.#session.stop()]);
    await this.#events.flush();
  }

  #probeLeases(log: Logger): void {
    const { claims, leases } = this.#watched;
    const [session, metrics] = [this.#session, this.#metrics];
    const { client, clock } = this.#context;
    const caches = { claims: claims.cache, leases: leases.cache };
    const probes = new LeaseProbes({ client, session, metrics, clock, log, ...caches });
    leases.onChange(({ type, object }) => {
      // responders of another pool in the address space probe its addresses
      if (type !== 'removed' && object.pool === this.#config.pool) probes.changed(object);
    });
  }

  #changed(): void {
    this.#freshness.changed();
    this.#scheduleUpdate();
  }

  #scheduleUpdate(): void {
    if (this.#cancelUpdate !== undefined || this.#stopping.signal.aborted) return;
    if (this.#context.informers.ready() !== undefined) return;
    const { clock } = this.#context;
    const delayMs = Math.max(BATCH_MS, this.#updatedAt + this.#pauseMs - clock.now());
    this.#cancelUpdate = clock.setTimer(delayMs, () => void this.#update());
  }

  async #update(): Promise<void> {
    const start = this.#freshness.begin();
    const pool = this.#pool();
    // without a valid pool, nothing is known that could replace the last table, which gets older
    if (pool !== undefined) await this.#build(pool, start);
    this.#cancelUpdate = undefined;
    if (this.#freshness.hasChangedSince(start)) this.#scheduleUpdate();
  }

  async #build(pool: Pool, start: TableStart): Promise<void> {
    const config = this.#helperConfig(pool);
    if (config === undefined) return;
    const { clock } = this.#context;
    const startedAt = clock.now();
    const table = await runInSlices(buildPoolTable(pool, this.#caches), clock, this.#stopping.signal);
    if (table === undefined) return;
    this.#table = table;
    this.#session.set({ config, table });
    this.#freshness.built(start);
    this.#reports.built(table);
    this.#metrics.table(table.entries.size, table.leftOut);
    this.#updatedAt = clock.now();
    const longestMs = this.#config.maxStalenessMs * MAX_PAUSE_PART;
    this.#pauseMs = Math.min((this.#updatedAt - startedAt) * PAUSE_FACTOR, longestMs);
  }

  #helperConfig(pool: Pool) {
    const { podName, guestInterface } = this.#config;
    const set = podName.slice(0, podName.lastIndexOf('-'));
    const peers = responderNames(set).filter((name) => name !== podName);
    return helperConfig(
      pool,
      this.#responder(pool, podName),
      peers.map((name) => this.#responder(pool, name)),
      guestInterface,
    );
  }

  #responder(pool: Pool, name: string): Responder {
    const { claims, leases } = this.#watched;
    const claim = claims.cache.get(joinKey(this.#config.namespace, name));
    return { name, addresses: claim === undefined ? [] : leasedAddresses(claim, pool, leases.cache) };
  }

  #tick(): void {
    const freshMs = this.#freshness.forMs();
    if (freshMs > 0) this.#session.refresh(freshMs);
    this.#metrics.fresh(freshMs);
    this.#metrics.connected(this.#session.problem === undefined);
    const pool = this.#pool();
    if (pool !== undefined) this.#reports.checkRouter(pool);
  }

  #receive(report: HelperObservation): void {
    if (report.kind === 'counts') {
      this.#metrics.counted(report.counts);
      return;
    }
    const { observation } = report;
    this.#metrics.observed(observation.kind);
    const pool = this.#pool();
    if (pool !== undefined && this.#table !== undefined) this.#reports.observed(observation, pool, this.#table);
  }

  #pool(): Pool | undefined {
    const state = this.#directory.stateOf(this.#config.pool);
    return state?.kind === 'served' ? state.pool : undefined;
  }

  #poolProblem(): string | undefined {
    const { pool } = this.#config;
    const state = this.#directory.stateOf(pool);
    if (state === undefined) return `AddressPool ${pool} does not exist`;
    if (state.kind !== 'served') return state.message;
    return state.pool.guest?.dhcp === undefined ? `AddressPool ${pool} has no spec.guest.dhcp` : undefined;
  }
}

/** Watches end so often within the time for which the table may be used: each end shows that nothing was missed until the watch began. */
const WATCHES_PER_STALENESS = 2.5;
const MIN_WATCH_SECONDS = 2;

/** Returns the informers of everything that the table depends on. */
function responderWatches(
  informers: InformerRegistry,
  { addressSpace, maxStalenessMs }: Pick<ResponderConfig, 'addressSpace' | 'maxStalenessMs'>,
) {
  const watchSeconds = Math.max(MIN_WATCH_SECONDS, Math.floor(maxStalenessMs / 1000 / WATCHES_PER_STALENESS));
  const leases: WatchSpec<AddressLease, LeaseRecord> = {
    resource: ADDRESS_LEASES,
    // a claim keeps leases of an earlier pool of the space
    fieldSelector: `spec.addressSpace=${addressSpace}`,
    transform: readLease,
    watchSeconds,
  };
  const indexes = { ...CLAIM_INDEXES, ...NETWORK_INDEXES };
  return {
    leases: informers.get(leases),
    claims: informers.get({ ...CLAIM_WATCH, indexes, watchSeconds }),
    vmis: informers.get({ ...GUEST_VMIS, watchSeconds }),
    pools: informers.get({ ...ADDRESS_POOL_WATCH, watchSeconds }),
    networks: informers.get({ ...NAD_WATCH, watchSeconds }),
  };
}
