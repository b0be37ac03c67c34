import type { Pool } from '../../addressing/pool/pool.js';
import { type KubeObject, joinKey } from '../../api/meta.js';
import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import { identityMetadataOf, pickKeys } from '../../cluster/metadata.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { Sync, SyncResult } from '../../kube/controller-loop.js';
import { isConflict, isNotFound } from '../../kube/errors.js';
import type { EventRecorder } from '../../kube/events.js';
import type { Informer } from '../../kube/informers/informer.js';
import type { InformerRegistry, WatchSpec } from '../../kube/informers/informers.js';
import { CONFIG_MAPS, type ConfigMap } from '../../kube/resources.js';
import { runInSlices } from '../../kube/run-in-slices.js';
import { leasedAddresses } from '../leased-addresses.js';
import { RESPONDER_LABELS, RESPONDER_INTERFACE, responderNames } from '../responder-manager/objects.js';
import { BY_RESPONDER_SET, type GuestViews, type Reconciler, guestCachesOf } from '../views.js';
import { AffectedNetworks } from './affected-networks.js';
import { IgnoredOptions } from './ignored-options.js';
import { type HelperConfig, helperConfig } from './protocol.js';
import {
  type IndexBeat,
  type PublishedTable,
  encodeTable,
  indexNameOf,
  tableData,
  versionOf,
} from './published-table.js';
import { requestedProbes } from './requested-probes.js';
import { type TableCaches, buildTable, poolGuests } from './table.js';
import { type CurrentTables, type DatedVersion, indexOfTable } from './published-index.js';

/** Collects changes that come together. */
const BATCH_MS = 50;
/** The pause after a table, as a multiple of the time that it took: a large table must not fill the process. */
const PAUSE_FACTOR = 10;
/** The longest pause, as a part of the longest time for which a table may be used: a large table must not get stale. */
const MAX_PAUSE_PART = 1 / 5;

interface TablePublisherDeps {
  readonly views: GuestViews;
  readonly informers: InformerRegistry;
  /** The StatefulSets of responders. */
  readonly sets: Pick<Informer<KubeObject>, 'cache' | 'onChange'>;
  readonly client: Pick<Client, 'find' | 'create' | 'replace' | 'delete'>;
  readonly clock: Clock;
  readonly events: Pick<EventRecorder, 'event'>;
  /** Of responders. */
  readonly maxStalenessMs: number;
  /** The names of all indexes. */
  readonly indexes: readonly string[];
  /** The last confirmed beat of an index. */
  readonly beatOf: (index: string) => IndexBeat | undefined;
}

/** The table of one StatefulSet during one term of leadership. */
interface TableState {
  /** The name of the pool. */
  readonly pool: string;
  readonly network: string;
  /** The name of the index that has it. */
  readonly index: string;
  /** How often something has changed on which the table depends. */
  changes: number;
  /** The last table that was built, the changes that it has, and until when the caches showed everything when the build began. */
  built?: { readonly version: string; readonly changes: number; readonly showsUntil: number };
  notBefore: number;
}

/** The ConfigMap of a table, without the table. */
type KnownTable = Pick<ConfigMap, 'metadata' | 'data'>;

/** Computes the tables of all responders, and writes those that have changed. Its keys are the names of StatefulSets, which their tables have too. */
export class TablePublisher implements Reconciler {
  readonly name = 'tables';
  readonly workers = 2;
  readonly #deps: TablePublisherDeps;
  readonly #caches: TableCaches;
  readonly #affected: AffectedNetworks;
  readonly #ignored: IgnoredOptions;
  readonly #tables;
  #states = new Map<string, TableState>();
  /** The answers to own writes, which may be newer than the cache, by name. */
  readonly #written = new Map<string, KnownTable>();
  #isDue = false;
  /** Tables that have changed and are not in the queue yet. A beat may find a change first. */
  readonly #toBuild = new Set<string>();

  constructor(deps: TablePublisherDeps) {
    this.#deps = deps;
    this.#caches = { ...guestCachesOf(deps.views), leases: deps.views.watched.claimLeases.cache };
    this.#affected = new AffectedNetworks(deps.views);
    this.#ignored = new IgnoredOptions(deps.events);
    this.#tables = deps.informers.get(RESPONDER_TABLES);
  }

  listen(add: (keys: Iterable<string>) => void): void {
    const { sets, clock } = this.#deps;
    this.#affected.follow(() => {
      if (this.#isDue) return;
      this.#isDue = true;
      clock.setTimer(BATCH_MS, () => {
        this.#isDue = false;
        this.#markChanged();
        add([...this.#toBuild]);
        this.#toBuild.clear();
      });
    });
    sets.onChange(({ object }) => add([object.metadata.name]));
    this.#tables.onChange(({ type, object }) => {
      const { name } = object.metadata;
      const state = this.#states.get(name);
      const isOwn = versionOf(object) === state?.built?.version && indexNameOf(object) === state.index;
      if (type !== 'removed' && isOwn) return;
      // somebody else wrote it, or it is an earlier own write
      this.#written.delete(name);
      add([name]);
    });
  }

  *allKeys(): Generator<string> {
    for (const { cache } of [this.#deps.sets, this.#tables])
      for (const { metadata } of cache.list()) yield metadata.name;
  }

  createSync(): Sync {
    this.#states = new Map();
    this.#written.clear();
    return (name: string, signal: AbortSignal) => this.#sync(name, signal);
  }

  end(): void {
    this.#states = new Map();
  }

  /** The tables of an index that have everything that the caches show, and until when each of the others does. */
  current(index: string): CurrentTables {
    const cachesShowUntil = this.#cachesShowUntil();
    this.#markChanged();
    const [versions, behind]: [Record<string, string>, Record<string, DatedVersion>] = [{}, {}];
    for (const [name, { built, changes, index: own }] of this.#states) {
      if (built === undefined || own !== index) continue;
      const { version, showsUntil } = built;
      if (built.changes === changes) versions[name] = version;
      // tenants can change objects all the time, and a table that stays the same makes no new statement about itself
      else behind[name] = { version, ageMs: this.#ageOf(showsUntil) };
    }
    return { ageMs: this.#ageOf(cachesShowUntil), versions, behind };
  }

  #cachesShowUntil(): number {
    const { claims, vmis, networks, pools, claimLeases } = this.#deps.views.watched;
    return Math.min(...[claims, vmis, networks, pools, claimLeases].map(({ lastProgress }) => lastProgress));
  }

  #ageOf(showsUntil: number): number {
    return Math.max(0, Math.ceil(this.#deps.clock.now() - showsUntil));
  }

  /** Counts what has changed. */
  #markChanged(): void {
    const { networks, pools } = this.#affected.take();
    for (const [name, state] of this.#states) {
      if (!networks.has(state.network) && !pools.has(state.pool)) continue;
      state.changes++;
      this.#toBuild.add(name);
    }
  }

  async #sync(name: string, signal: AbortSignal): Promise<SyncResult> {
    const { sets, clock } = this.#deps;
    if (sets.cache.get(joinKey(RESPONDERS_NAMESPACE, name)) === undefined) return this.#remove(name);
    const state = this.#states.get(name) ?? this.#begin(name);
    if (state === undefined) return undefined;
    const waitMs = state.notBefore - clock.now();
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    await this.#publish(name, state, signal);
    return undefined;
  }

  #begin(name: string): TableState | undefined {
    const [pool] = this.#deps.views.watched.pools.cache.byIndex(BY_RESPONDER_SET, name);
    if (pool === undefined) return undefined;
    const index = indexOfTable(name, this.#deps.indexes);
    const { metadata, spec } = pool;
    const state: TableState = { pool: metadata.name, network: spec.network, index, changes: 0, notBefore: 0 };
    this.#states.set(name, state);
    return state;
  }

  async #publish(name: string, state: TableState, signal: AbortSignal): Promise<void> {
    const { views, clock, beatOf } = this.#deps;
    const startedAt = clock.now();
    const { changes } = state;
    const showsUntil = this.#cachesShowUntil();
    const { index } = state;
    const statement = { after: beatOf(index), ageMs: this.#ageOf(showsUntil) };
    const evaluated = views.directory.stateOf(state.pool);
    // without a valid pool, nothing is known that could replace the last table, which gets older
    if (evaluated?.kind !== 'served') return;
    const table = await this.#build(name, evaluated.pool, signal);
    if (table === undefined) return;
    const known = this.#written.get(name) ?? this.#tables.cache.get(joinKey(RESPONDERS_NAMESPACE, name));
    const stored = known !== undefined && indexNameOf(known) === index ? versionOf(known) : '';
    const encoded = await encodeTable(table, {}, stored);
    const version = encoded?.version ?? stored;
    state.built = { version, changes, showsUntil };
    if (encoded !== undefined && version !== stored)
      await this.#write(name, known, tableData(encoded, statement, index), signal);
    const pauseMs = (clock.now() - startedAt) * PAUSE_FACTOR;
    state.notBefore = clock.now() + Math.min(pauseMs, this.#deps.maxStalenessMs * MAX_PAUSE_PART);
  }

  async #build(name: string, pool: Pool, signal: AbortSignal): Promise<PublishedTable | undefined> {
    const { views, clock } = this.#deps;
    const configs = this.#configsOf(name, pool);
    const guests = await runInSlices(poolGuests(pool, this.#caches), clock, signal);
    const table = guests && (await runInSlices(buildTable(pool, guests), clock, signal));
    if (configs === undefined || table === undefined) return undefined;
    this.#ignored.found(pool.name, guests ?? []);
    const { claims, claimLeases } = views.watched;
    const probes = requestedProbes(pool.name, claimLeases.cache, claims.cache);
    const hasIpv6Gateway = pool.subnets.some(({ cidr, gateway }) => cidr.family === 6 && gateway !== undefined);
    const { uid, network } = pool;
    return { pool: { name: pool.name, uid, network, hasIpv6Gateway }, configs, table, probes };
  }

  /** Undefined if guests of the pool may not use DHCP. */
  #configsOf(name: string, pool: Pool): Record<string, HelperConfig> | undefined {
    const { claims, leases } = this.#caches;
    const responders = responderNames(name).map((each) => {
      const claim = claims.get(joinKey(RESPONDERS_NAMESPACE, each));
      return { name: each, addresses: claim === undefined ? [] : leasedAddresses(claim, pool, leases) };
    });
    const configs = responders.flatMap((self) => {
      const peers = responders.filter((each) => each !== self);
      const config = helperConfig(pool, self, peers, RESPONDER_INTERFACE);
      return config === undefined ? [] : [[self.name, config] as const];
    });
    return configs.length === 0 ? undefined : Object.fromEntries(configs);
  }

  async #write(name: string, known: KnownTable | undefined, data: object, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const ref = { namespace: RESPONDERS_NAMESPACE, name };
    const labels = RESPONDER_LABELS;
    try {
      const written =
        known === undefined
          ? await client.create(CONFIG_MAPS, { metadata: { ...ref, labels }, ...data }, { signal })
          : await client.replace(CONFIG_MAPS, { metadata: { ...known.metadata, labels }, ...data }, { signal });
      this.#written.set(name, transformTable(written));
    } catch (error) {
      this.#written.delete(name);
      // the cache may be behind for some time, and the next attempt needs what is there
      if (isConflict(error) || isNotFound(error)) {
        const found = await client.find(CONFIG_MAPS, ref, { signal });
        if (found !== undefined) this.#written.set(name, transformTable(found));
      }
      throw error;
    }
  }

  /** Its responders end, and what they have gets older. */
  async #remove(name: string): Promise<undefined> {
    this.#states.delete(name);
    this.#written.delete(name);
    const table = this.#tables.cache.get(joinKey(RESPONDERS_NAMESPACE, name));
    if (table === undefined) return undefined;
    const { namespace, uid } = table.metadata;
    await this.#deps.client.delete(CONFIG_MAPS, { namespace, name }, { uid });
    return undefined;
  }
}

/** Not the indexes, which have no labels. */
const RESPONDER_TABLES: WatchSpec<ConfigMap, KnownTable> = {
  resource: CONFIG_MAPS,
  namespace: RESPONDERS_NAMESPACE,
  labelSelector: Object.entries(RESPONDER_LABELS)
    .map(([key, value]) => `${key}=${value}`)
    .join(','),
  transform: transformTable,
};

function transformTable(object: ConfigMap): KnownTable {
  return { metadata: identityMetadataOf(object.metadata), data: pickKeys(object.data, ['version', 'index']) ?? {} };
}
