import type { AddressPool } from '../../api/address-pool.js';
import { POOL_NAD_NAMESPACE } from '../../api/names.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import {
  type NetworkUser,
  type Resolution,
  isServingNamespace,
  nadNamespaceOfUser,
} from '../../addressing/directory/resolution.js';
import { derivedPoolName } from '../../addressing/pool/derived-pool.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { type ParsedNad, transformNad, transformPool } from '../../cluster/transforms.js';
import type { Lister } from '../../kube/informers/cache.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { Informer } from '../../kube/informers/informer.js';
import type { WatchSpec } from '../../kube/informers/informers.js';
import { ADDRESS_POOLS, NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import { readResult } from './cni-error.js';
import { NamedObjects } from './live-reads.js';
import type { RequestContext } from './request-queue.js';

/** Administrators' pools, which are few. The policy holdfast-pool-origin reserves the label for pools that are derived from NADs. */
export const ADMIN_POOL_WATCH: WatchSpec<AddressPool> = {
  resource: ADDRESS_POOLS,
  labelSelector: `!${POOL_NAD_NAMESPACE}`,
  transform: transformPool,
};

interface PoolLookupDeps {
  readonly client: Pick<Client, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly adminPools: Pick<Informer<AddressPool>, 'onChange' | 'restartWatch'> & {
    readonly cache: Pick<Lister<AddressPool>, 'get'>;
  };
  readonly maxStalenessMs: number;
}

/**
 * Finds the pool of an attachment. NADs and derived pools are read live by name: only those that pods of this node name, each at most once per
 * --max-staleness. Administrators' pools come from a watch. The one that serves a pod without a claim is read as often, because a watch proves
 * nothing: an API server that is cut off from etcd sends bookmarks too.
 */
export class PoolLookup {
  /** Knows administrators' pools, and what was loaded. Load what a question is about just before it. */
  readonly directory: PoolDirectory;
  readonly #deps: PoolLookupDeps;
  readonly #nads;
  readonly #pools;

  constructor(deps: PoolLookupDeps) {
    this.#deps = deps;
    this.#nads = new NamedObjects({ ...deps, resource: NETWORK_ATTACHMENT_DEFINITIONS, transform: transformNad });
    this.#pools = new NamedObjects({ ...deps, resource: ADDRESS_POOLS, transform: transformPool });
    this.directory = new PoolDirectory({ pools: this.#pools.cache, networks: this.#nads.cache });
    this.directory.follow({ pools: this.#pools, networks: this.#nads });
    deps.adminPools.onChange((change) => this.#pools.observe(change, change.object.metadata.name));
  }

  /**
   * Returns which pool serves a user. What was read earlier is read again before the answer is no.
   * @throws {CniError} 11 if a read failed
   */
  async resolve(user: NetworkUser, call: RequestContext): Promise<Resolution> {
    const now = this.#deps.clock.now();
    await this.load(user, call);
    const resolution = this.directory.resolveUser(user);
    if (resolution.kind === 'served') return resolution;
    await this.load(user, call, now);
    return this.directory.resolveUser(user);
  }

  /**
   * Reads the NAD of a user, and the derived pool unless an administrator's pool serves instead.
   * @param since ignores reads before this time, in the clock's ms
   * @returns the NAD, if it exists
   * @throws {CniError} 11 if a read failed
   */
  async load(user: NetworkUser, { signal }: RequestContext, since = this.#staleBefore): Promise<ParsedNad | undefined> {
    const { nad, namespace, network } = user;
    const limits = { signal, since };
    const isForAdmin = this.adminPools(network).some((pool) => isServingNamespace(pool, namespace));
    const pool = isForAdmin ? undefined : this.#pools.read(derivedPoolName(nadNamespaceOfUser(user), network), limits);
    const [found] = await readResult(Promise.all([nad === undefined ? nad : this.#nads.read(nad, limits), pool]));
    return found;
  }

  /** Reads a NAD. @param key `namespace/name` @throws {StatusError | TransportError} if the read failed */
  async loadNad(key: string, { signal }: RequestContext, since = this.#staleBefore): Promise<void> {
    await this.#nads.read(key, { signal, since });
  }

  /** Reads pools, unless the watch shows them. @throws {CniError} 11 if a read failed */
  async loadPools(names: Iterable<string>, { signal }: RequestContext, since = this.#staleBefore): Promise<void> {
    const limits = { signal, since };
    const unwatched = [...new Set(names)].filter((name) => !this.#isWatched(name));
    await readResult(Promise.all(unwatched.map((name) => this.#pools.read(name, limits))));
  }

  /**
   * Reads a pool that was chosen.
   * @param maxAgeMs uses a read of that age
   * @returns false if it has changed, and must be chosen again
   * @throws {CniError} 11 if the read failed
   */
  async confirm(pool: Pool, { signal }: RequestContext, maxAgeMs = this.#deps.maxStalenessMs): Promise<boolean> {
    const { adminPools, clock } = this.#deps;
    await readResult(this.#pools.read(pool.name, { signal, since: clock.now() - maxAgeMs }));
    const watched = adminPools.cache.get(pool.name);
    // it may lack other pools too
    if (watched !== undefined && this.#pools.isOutdated(watched, pool.name)) adminPools.restartWatch();
    return this.directory.pool(pool.name) === pool;
  }

  /** Returns a NAD that was read since a time, in the clock's ms. @param key `namespace/name` */
  nad(key: string, since = this.#staleBefore): ParsedNad | undefined {
    return this.hasReadNad(key, since) ? this.#nads.cache.get(key) : undefined;
  }

  /** Whether a NAD was read since a time, in the clock's ms, found or not. */
  hasReadNad(key: string, since: number): boolean {
    return this.#nads.wasRead(key, since);
  }

  /** Returns a pool as it was written, if the watch shows it or it was loaded. */
  writtenPool(name: string): AddressPool | undefined {
    return this.#pools.cache.get(name);
  }

  /** Administrators' pools of a network, oldest first. */
  adminPools(network: string): ReturnType<PoolDirectory['poolsOf']> {
    return this.directory.poolsOf(network).filter(({ nadNamespace }) => nadNamespace === undefined);
  }

  /** Forgets NADs and derived pools that were read before a time, in the clock's ms. */
  evictBefore(time: number): void {
    this.#nads.evictBefore(time);
    this.#pools.evictBefore(time, (name) => this.#isWatched(name));
  }

  #isWatched(name: string): boolean {
    return this.#deps.adminPools.cache.get(name) !== undefined;
  }

  get #staleBefore(): number {
    return this.#deps.clock.now() - this.#deps.maxStalenessMs;
  }
}
