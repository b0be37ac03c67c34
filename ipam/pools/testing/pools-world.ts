import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AddressLease, LeaseOwner } from '../../../api/address-lease.js';
import type { AddressPool } from '../../../api/address-pool.js';
import type { KubeObject } from '../../../api/meta.js';
import { Cache } from '../../../kube/cache.js';
import { silentLogger } from '../../../kube/log.js';
import type { SyncResult } from '../../../kube/controller-loop.js';
import { POOL_INDEXES } from '../../../cluster/indexes.js';
import type { ParsedNad } from '../../../cluster/transforms.js';
import { nadRightsFrom } from '../../../api/nad-rights.js';
import { createLease, readLease } from '../../../addressing/lease/lease.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { parseAddress } from '../../../addressing/address/address.js';
import { LeaseBook } from '../../leases/lease-book.js';
import { PoolDirectory } from '../../../addressing/directory/directory.js';
import { Metrics } from '../../../process/metrics.js';
import { createPoolMetrics } from '../metrics.js';
import { type PoolClient, type PoolsDependencies, createPoolsSync } from '../sync.js';
import { allPoolKeys } from '../triggers.js';
import { PoolUsage } from '../usage.js';
import { SegmentOverlapTracker } from '../segment-overlap-tracker.js';
import { type Preconditions, apiError, checkPreconditions } from '../../../test/api-errors.js';
import { ManualClock } from '../../../test/manual-clock.js';
import { mergePatch } from '../../../test/merge-patch.js';

export const MAX_STALENESS_MS = 30_000;
/** How many derived pools have metrics. */
export const MAX_DERIVED_POOLS = 12;

/**
 * Pools, leases and NADs with the rules of the API server that their sync relies on: preconditions, finalizers, the status as a subresource. Caches show each
 * write at once.
 */
export class PoolsWorld {
  readonly pools = new Cache<AddressPool>(POOL_INDEXES);
  readonly nads = new Cache<ParsedNad>();
  readonly leases = new Map<string, AddressLease>();
  readonly book = new LeaseBook();
  readonly clock = new ManualClock(Date.UTC(2026, 0, 1));
  /** Each write as `<verb> <pool>`. */
  readonly writes: string[] = [];
  /** `<kind> <name> <reason>: <message>`. */
  readonly events: string[] = [];
  /** Keys of claims with running VMs. */
  readonly running = new Set<string>();
  /** Whether the API server serves NADs. */
  areNadsServed = true;
  readonly directory = new PoolDirectory({
    pools: this.pools,
    networks: this.nads,
    areNetworksServed: () => this.areNadsServed,
  });
  readonly usage = new PoolUsage(this.book, ({ namespace, name }) => this.running.has(`${namespace}/${name}`));
  /** Number of comparisons of the layer-2 segments. */
  comparisons = 0;
  readonly overlaps = new SegmentOverlapTracker(this.directory, this.clock, () => this.comparisons++);
  isGateOpen = true;
  readonly capacityNamespaces: string[] = [];
  /** How many pools are derived from NADs of one namespace, for leaders that are elected from now on. */
  maxDerivedPools = 64;
  /** For leaders that are elected from now on. */
  enforceAddressOwnership = false;
  /** For leaders that are elected from now on. */
  blocks: PoolsDependencies['blocks'];
  /** Time between two writes of one pool's counts, for leaders that are elected from now on. */
  statusIntervalMs = 1_000;
  /** The registry of the metrics of pools. */
  readonly registry = new Metrics();
  readonly metrics = createPoolMetrics(this.registry, MAX_DERIVED_POOLS);
  /** The next write of a pool throws it. */
  failure: Error | undefined;
  #version = 100;
  readonly #sync = this.elect();

  /** Returns the sync of a new leader, without any state. */
  elect(): (key: string) => Promise<SyncResult> {
    const {
      pools,
      directory,
      book,
      usage,
      clock,
      blocks,
      capacityNamespaces,
      enforceAddressOwnership,
      maxDerivedPools,
    } = this;
    return createPoolsSync({
      ...(blocks && { blocks }),
      client: this.#client(),
      pools,
      directory,
      book,
      usage,
      overlaps: this.overlaps,
      maxStalenessMs: MAX_STALENESS_MS,
      rightsOf: nadRightsFrom({
        globalNamespaces: ['default'],
        capacityNamespaces,
        enforceAddressOwnership,
        maxDerivedPools,
      }),
      isGateOpen: () => this.isGateOpen,
      events: {
        event: ({ kind, metadata }, _type, reason, message) =>
          this.events.push(`${kind} ${metadata.name} ${reason}: ${message}`),
      },
      clock,
      random: () => 0,
      statusIntervalMs: this.statusIntervalMs,
      metrics: this.metrics,
      log: silentLogger,
    });
  }

  sync(key: string): Promise<SyncResult> {
    return this.#sync(key);
  }

  /** Syncs all keys until nothing is written any more. Time advances as the syncs ask for it. */
  async settle(sync = this.#sync): Promise<void> {
    for (let before = -1, rounds = 0; before !== this.writes.length; rounds++) {
      if (rounds > 50) throw new Error(`there is no end of writes: ${this.writes.slice(-4).join(', ')}`);
      before = this.writes.length;
      await nextTurn(); // segments are compared in slices
      for (const key of allPoolKeys(this.pools, this.nads)) {
        const result = await sync(key);
        if (result !== undefined && 'earlyByMs' in result) {
          this.clock.advanceTo(this.clock.now() + result.earlyByMs);
          await sync(key);
        }
      }
    }
  }

  putPool(pool: AddressPool): AddressPool {
    const metadata = {
      ...pool.metadata,
      uid: pool.metadata.uid ?? `${pool.metadata.name}-uid`,
      resourceVersion: this.#next(),
    };
    const stored = { ...structuredClone(pool), metadata };
    this.pools.set(stored);
    this.directory.changed();
    return stored;
  }

  /** Does what `kubectl delete` does: the pool is gone once it has no finalizer. */
  deletePool(name: string): void {
    const pool = this.pools.get(name);
    if (pool === undefined) return;
    if ((pool.metadata.finalizers ?? []).length > 0) {
      this.putPool({ ...pool, metadata: { ...pool.metadata, deletionTimestamp: '2026-06-01T00:00:00Z' } });
    } else {
      this.pools.delete(name);
      this.usage.forget(name);
      this.directory.changed();
    }
  }

  putNads(...nads: ParsedNad[]): void {
    for (const nad of nads) this.nads.set(nad);
    this.directory.changed();
  }

  dropNad(key: string): void {
    this.nads.delete(key);
    this.directory.changed();
  }

  /** Leases an address to a claim, `namespace/name`. */
  lease(pool: string, address: string, claim: string, addressSpace = 'blue'): void {
    const [namespace = '', name = ''] = claim.split('/');
    const owner: LeaseOwner = { kind: 'IPAMClaim', namespace, name, uid: `${claim}-uid` };
    const write = createLease({ address: parseAddress(address), addressSpace, pool, owner });
    if (write.verb !== 'create') throw new TypeError('a new lease is created');
    // a UID is never reused, and the lease book relies on that
    const uid = `${pool}-${address}-${this.#next()}`;
    this.#putLease({ ...write.lease, metadata: { ...write.lease.metadata, uid } });
  }

  /** Does what `kubectl apply` of a lease without an owner does. */
  reserve(pool: string, address: string, addressSpace = 'blue'): void {
    const name = leaseName(addressSpace, parseAddress(address));
    this.#putLease({ metadata: { name, uid: `${name}-uid` }, spec: { address, addressSpace, pool } });
  }

  release(address: string): void {
    const lease = this.#find(address);
    this.#putLease({ ...lease, spec: { ...lease.spec, releasedAt: '2026-01-01T00:00:00Z' } });
  }

  /** Quarantines the lease of an address, as if a host with the MAC address had answered. */
  quarantine(address: string, mac = '02:00:00:00:00:99'): void {
    const { owner: _owner, ...spec } = this.#find(address).spec;
    const quarantine = { since: '2026-01-01T00:00:00Z', until: '2026-01-01T01:00:00Z', mac };
    this.#putLease({ ...this.#find(address), spec: { ...spec, quarantine } });
  }

  expire(address: string): void {
    const { metadata } = this.#find(address);
    this.leases.delete(metadata.name);
    this.book.forget(metadata.name, metadata.uid ?? '');
  }

  condition(pool: string, type: string): string {
    const found = this.pools.get(pool)?.status?.conditions?.find((condition) => condition.type === type);
    return found === undefined ? 'none' : `${found.status} ${found.reason}: ${found.message}`;
  }

  #find(address: string): AddressLease {
    const lease = [...this.leases.values()].find(({ spec }) => spec.address === address);
    if (lease === undefined) throw new TypeError(`${address} is not leased`);
    return lease;
  }

  #putLease(lease: AddressLease): void {
    const stored = { ...lease, metadata: { ...lease.metadata, resourceVersion: this.#next() } };
    this.leases.set(stored.metadata.name, stored);
    readLease(stored);
    this.book.recordWrite(stored);
  }

  #next(): string {
    return String(++this.#version);
  }

  #client(): PoolClient {
    const client = {
      create: (_: unknown, pool: AddressPool) => this.#write(`create ${pool.metadata.name}`, () => this.#create(pool)),
      patch: (
        _: unknown,
        { name }: { name: string },
        { body }: { body: object },
        call: { subresource?: string } = {},
      ) => {
        const part = call.subresource ?? Object.keys(body).sort().join(' ');
        return this.#write(`${part} ${name}`, () => this.#patch(name, body, part));
      },
      delete: (_: unknown, { name }: { name: string }, { uid, resourceVersion }: KubeObject['metadata']) =>
        this.#write(`delete ${name}`, () => {
          this.#checked(name, { uid, resourceVersion });
          this.deletePool(name);
        }),
      listAs: (_: unknown, project: (lease: AddressLease) => unknown, { labelSelector }: { labelSelector: string }) => {
        const [label = '', value] = labelSelector.split('=');
        const found = [...this.leases.values()].filter(({ metadata }) => metadata.labels?.[label] === value);
        return Promise.resolve({ items: found.map(project), resourceVersion: '1' });
      },
    };
    return client as unknown as PoolClient;
  }

  async #write<T>(what: string, act: () => T): Promise<T> {
    const { failure } = this;
    this.failure = undefined;
    this.writes.push(what);
    await Promise.resolve();
    if (failure !== undefined) throw failure;
    return act();
  }

  #create(pool: AddressPool): AddressPool {
    if (this.pools.get(pool.metadata.name) !== undefined) {
      throw apiError(409, 'AlreadyExists', 'AlreadyExists', pool.metadata.name);
    }
    const uid = `${pool.metadata.name}-uid-${this.#next()}`;
    return this.putPool({ ...pool, metadata: { ...pool.metadata, uid, creationTimestamp: '2026-02-01T00:00:00Z' } });
  }

  #patch(name: string, body: object, part: string): AddressPool {
    const patch = JSON.parse(JSON.stringify(body)) as { metadata?: Preconditions };
    const pool = this.#checked(name, patch.metadata ?? {});
    const merged = structuredClone(pool);
    mergePatch(merged, patch);
    const stored = part === 'status' ? { ...pool, ...(merged.status && { status: merged.status }) } : merged;
    const after = this.putPool(stored);
    const gone = after.metadata.deletionTimestamp !== undefined && (after.metadata.finalizers ?? []).length === 0;
    if (gone) this.deletePool(name);
    return after;
  }

  #checked(name: string, preconditions: Preconditions): AddressPool {
    const pool = this.pools.get(name);
    if (pool === undefined) throw apiError(404, 'NotFound', 'NotFound', name);
    checkPreconditions(pool, preconditions);
    return pool;
  }
}
