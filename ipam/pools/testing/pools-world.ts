import { nextTurn } from '../../../kube/run-in-slices.js';
import type { AddressLease, LeaseOwner } from '../../../api/address-lease.js';
import type { AddressPool } from '../../../api/address-pool.js';
import { Cache } from '../../../kube/informers/cache.js';
import { Client } from '../../../kube/client.js';
import { ADDRESS_LEASES, ADDRESS_POOLS } from '../../../kube/resources.js';
import { MemoryTransport, targetOf } from '../../../kube/testing/memory-transport.js';
import { ObjectTracker, type TrackedEvent } from '../../../kube/testing/object-tracker.js';
import type { ApiRequest } from '../../../kube/transport/transport.js';
import { silentLogger } from '../../../kube/log.js';
import type { SyncResult } from '../../../kube/controller-loop.js';
import { POOL_INDEXES } from '../../../cluster/watch-specs.js';
import type { ParsedNad } from '../../../cluster/transforms.js';
import { nadRightsFrom } from '../../../api/networks/nad-rights.js';
import { createLease } from '../../../addressing/lease/lease.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { parseAddress } from '../../../addressing/address/address.js';
import { LeaseBook } from '../../leases/lease-book.js';
import { PoolDirectory } from '../../../addressing/directory/directory.js';
import { Metrics } from '../../../process/metrics.js';
import { createPoolMetrics } from '../metrics.js';
import { type PoolsDependencies, createPoolsSync } from '../sync.js';
import { allPoolKeys } from '../triggers.js';
import { PoolUsage } from '../usage.js';
import { SegmentOverlapTracker } from '../segment-overlap.js';
import { ManualClock } from '../../../test/manual-clock.js';

const VERBS: Readonly<Record<string, string>> = { POST: 'create', DELETE: 'delete' };
export const MAX_STALENESS_MS = 30_000;
/** How many derived pools have metrics. */
export const MAX_DERIVED_POOLS = 12;

/** Pools and leases on an API server, and NADs. Caches show each write at once. */
export class PoolsWorld {
  readonly pools = new Cache<AddressPool>(POOL_INDEXES);
  readonly nads = new Cache<ParsedNad>();
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
  readonly #api = new MemoryTransport(new ObjectTracker({ now: () => this.clock.wall() }));
  readonly #sync: (key: string) => Promise<SyncResult>;

  constructor() {
    this.#api.tracker.observe(ADDRESS_POOLS, (event) => this.#show(event));
    this.#api.before = (request) => this.#count(request);
    this.#sync = this.elect();
  }

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
      client: new Client(this.#api),
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

  get leases(): ReadonlyMap<string, AddressLease> {
    return this.#api.tracker.objects(ADDRESS_LEASES);
  }

  sync(key: string): Promise<SyncResult> {
    return this.#sync(key);
  }

  /** Syncs all keys until nothing is written any more. Time advances as the syncs ask for it. */
  async settle(sync = this.#sync): Promise<void> {
    for (let before = -1, rounds = 0; before !== this.writes.length; rounds++) {
      if (rounds > 50) throw new Error(`there is no end of writes: ${this.writes.slice(-4).join(', ')}`);
      before = this.writes.length;
      await nextTurn(); // after that of the comparison of segments
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
    const { uid = `${pool.metadata.name}-uid` } = pool.metadata;
    this.#api.tracker.put(ADDRESS_POOLS, { ...structuredClone(pool), metadata: { ...pool.metadata, uid } });
    return this.#api.tracker.get(ADDRESS_POOLS, pool.metadata);
  }

  /** Does what `kubectl delete` does: the pool is gone once it has no finalizer. */
  deletePool(name: string): void {
    if (this.pools.get(name) !== undefined) this.#api.tracker.delete(ADDRESS_POOLS, { name });
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
    this.#putLease(write.object);
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
    this.#api.tracker.remove(ADDRESS_LEASES, metadata);
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
    this.#api.tracker.put(ADDRESS_LEASES, lease);
    this.book.recordWrite(this.#api.tracker.get(ADDRESS_LEASES, lease.metadata));
  }

  /** Caches show each write of a pool at once. */
  #show({ type, object }: TrackedEvent<AddressPool>): void {
    const { name } = object.metadata;
    if (type === 'DELETED') {
      this.pools.delete(name);
      this.usage.forget(name);
    } else this.pools.set(object);
    this.directory.changed();
  }

  #count({ method, path, body }: ApiRequest): void {
    if (method === 'GET') return;
    const { name = (body as AddressPool).metadata.name, subresource } = targetOf(path);
    const verb =
      method === 'PATCH'
        ? (subresource ??
          Object.keys(body as object)
            .sort()
            .join(' '))
        : VERBS[method];
    this.writes.push(`${verb} ${name}`);
    const { failure } = this;
    this.failure = undefined;
    if (failure !== undefined) throw failure;
  }
}
