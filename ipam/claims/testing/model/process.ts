import { ADDRESS_POOL_WATCH } from '../../../../cluster/watched.js';
import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import { type KubeObject, objectKey } from '../../../../api/meta.js';
import { createClaimSync } from '../../sync.js';
import { CLAIM_PODS, ClaimPods } from '../../pods.js';
import { Promises } from '../../promises.js';
import { allKeys, keysOfClaim, keysOfLease, keysOfNetworks, keysOfVacancy } from '../../triggers.js';
import { ClaimWaiters } from '../../waiting.js';
import type { LeaseRecord } from '../../../core/lease.js';
import { LeaseBook } from '../../../leases/book.js';
import { PoolDirectory } from '../../../directory/directory.js';
import { SERVED_CLAIMS } from '../../watched.js';
import { ADDRESS_LEASE_WATCH } from '../../../leases/lease-watch.js';
import { Cache, type Indexes } from '../../../../kube/cache.js';
import { Client } from '../../../../kube/client.js';
import type { EventRecorder } from '../../../../kube/events.js';
import type { Change } from '../../../../kube/informer.js';
import { silentLogger } from '../../../../kube/log.js';
import type { SyncResult } from '../../../../kube/loop.js';
import type { Wire } from '../../../../kube/transport.js';
import { type NetworkAttachment } from '../../../../cluster/shrink.js';
import { KNOWN_KUBEVIRT } from '../../../../test/launcher-pods.js';
import { cacheOf } from '../../../../test/pool-objects.js';
import type { Kind, World } from './world.js';

/** Nobody may have an address sooner than twice that after its release. */
export const MAX_STALENESS_MS = 30_000;

/** A cache that sees what has happened when it is told to. */
class Lagging<T extends KubeObject, S extends KubeObject> {
  readonly cache: Cache<S>;
  readonly #handlers: ((change: Change<S>) => void)[] = [];
  readonly #world: World;
  readonly #kind: Kind;
  readonly #shrink: (object: T) => S;
  #position: number;

  constructor(world: World, kind: Kind, options: { shrink?: (object: T) => S; indexes?: Indexes<S> }) {
    this.#world = world;
    this.#kind = kind;
    this.#shrink = options.shrink ?? ((object) => object as KubeObject as S);
    this.cache = new Cache<S>(options.indexes);
    this.#position = world.log[kind].length;
    for (const object of world.list(kind)) this.cache.set(this.#shrink(object as KubeObject as T));
  }

  onChange(handler: (change: Change<S>) => void): void {
    this.#handlers.push(handler);
    for (const object of this.cache.list()) handler({ type: 'added', object });
  }

  deliver(count: number): boolean {
    const events = this.#world.log[this.#kind].slice(this.#position, this.#position + count);
    this.#position += events.length;
    for (const { type, object } of events) this.#apply(type, object as T);
    return events.length > 0;
  }

  #apply(type: 'set' | 'removed', object: T): void {
    if (type === 'removed') {
      const before = this.cache.delete(objectKey(object));
      if (before !== undefined) this.#tell({ type: 'removed', object: before, before });
      return;
    }
    const small = this.#shrink(object);
    const before = this.cache.set(small);
    this.#tell(before === undefined ? { type: 'added', object: small } : { type: 'changed', object: small, before });
  }

  #tell(change: Change<S>): void {
    for (const handler of this.#handlers) handler(change);
  }
}

/** One IPAM process that leads, or believes so: its caches lag behind, its queue has no clock. */
export class ModelProcess {
  readonly queue = new Set<string>();
  /** Those whose last sync failed. */
  readonly retries = new Set<string>();
  readonly events: string[] = [];
  readonly waiters: ClaimWaiters;
  readonly book = new LeaseBook();
  readonly directory: PoolDirectory;
  readonly claims;
  readonly gates = { stickyMAC: true };
  /** Of the pool's addresses: those that VMs hold which do not run. */
  heldByStopped = 0;
  readonly #informers: Record<Kind, { deliver(count: number): boolean }>;
  readonly #sync: (key: string) => Promise<SyncResult>;

  constructor(
    world: World,
    wire: Wire,
    networks: readonly NetworkAttachment[],
    isGateOpen: () => boolean = () => true,
  ) {
    const claims = new Lagging(world, 'ipamclaims', SERVED_CLAIMS);
    const leases = new Lagging(world, 'addressleases', ADDRESS_LEASE_WATCH);
    const pools = new Lagging(world, 'addresspools', ADDRESS_POOL_WATCH);
    const pods = new Lagging(world, 'pods', CLAIM_PODS);
    this.claims = claims;
    this.#informers = { ipamclaims: claims, addressleases: leases, addresspools: pools, pods };
    this.waiters = new ClaimWaiters((keys) => this.add(keys));
    this.directory = new PoolDirectory({ pools: pools.cache, networks: cacheOf(networks) });
    const claimPods = new ClaimPods(pods, claims.cache);
    this.book.attach(leases);
    const promises = new Promises({ claims: claims.cache, book: this.book, directory: this.directory });
    this.directory.onChange((changed) => promises.networksChanged(changed));
    claims.onChange((change) => promises.claimChanged(change));
    this.book.onChange((change) => promises.leaseChanged(change));
    claims.onChange((change) => this.add(keysOfClaim(change)));
    pools.onChange((change) => this.directory.changed(change));
    this.directory.onChange((changed) => this.add(keysOfNetworks(changed, claims.cache)));
    claimPods.onChange((key) => this.add([key]));
    this.book.onChange((change: { before?: LeaseRecord; after?: LeaseRecord }) =>
      this.add(keysOfLease(change, this.waiters)),
    );
    this.book.onGivenUp((space, address) => this.add(keysOfVacancy(space, address, this.waiters)));
    const events: Pick<EventRecorder, 'event'> = {
      event: ({ kind }, type, reason, message) => void this.events.push(`${type} ${kind} ${reason}: ${message}`),
    };
    const { gates } = this;
    this.#sync = createClaimSync({
      claims: claims.cache,
      book: this.book,
      directory: this.directory,
      pods: claimPods,
      client: new Client(wire),
      waiters: this.waiters,
      promises,
      gate: { isOpen: isGateOpen },
      heldByStopped: () => this.heldByStopped,
      kubevirt: KNOWN_KUBEVIRT,
      maxStalenessMs: MAX_STALENESS_MS,
      get stickyMAC() {
        return gates.stickyMAC;
      },
      clock: { now: () => world.now, wall: () => world.now },
      events,
      metrics: { stepped: () => undefined, took: () => undefined, released: () => undefined, waiting: () => undefined },
      log: silentLogger,
    });
    // what came before it began to lead was told to nobody
    this.queue.clear();
    promises.begin();
    this.add(allKeys(claims.cache, this.book));
  }

  add(keys: readonly string[]): void {
    for (const key of keys) this.queue.add(key);
  }

  addAll(): void {
    this.add(allKeys(this.claims.cache, this.book));
  }

  deliver(kind: Kind, count: number): boolean {
    return this.#informers[kind].deliver(count);
  }

  deliverAll(): boolean {
    return (['addresspools', 'addressleases', 'ipamclaims', 'pods'] as const)
      .map((kind) => this.deliver(kind, Infinity))
      .includes(true);
  }

  /** The first key that waits, else one that has failed. */
  get nextKey(): string | undefined {
    const [key] = this.queue.size > 0 ? this.queue : this.retries;
    return key;
  }

  async syncNext(): Promise<void> {
    if (this.nextKey !== undefined) await this.syncFromQueue(this.nextKey);
  }

  /** Whether the key waits or not. */
  async syncFromQueue(key: string): Promise<void> {
    this.queue.delete(key);
    this.retries.delete(key);
    try {
      const result = await this.sync(key);
      if (result !== undefined && 'retry' in result) this.retries.add(key);
    } catch (error) {
      if (error instanceof TypeError || (error as Error).name === 'Violation') throw error;
      this.retries.add(key);
    }
  }

  sync(key: string): Promise<SyncResult> {
    return this.#sync(key);
  }

  claim(key: string): IPAMClaim | undefined {
    return this.claims.cache.get(key);
  }
}
