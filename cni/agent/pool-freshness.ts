import type { AddressPool } from '../../api/address-pool.js';
import { type KubeObject, isNewer, joinKey, splitKey } from '../../api/meta.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { Lister } from '../../kube/cache.js';
import type { Client } from '../../kube/client.js';
import type { Resource } from '../../kube/resource.js';
import { ADDRESS_POOLS, NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import type { Attachment } from './attachment.js';
import { type BoundedWaitDeps, type RequestContext, BoundedWait } from './request-context.js';

/** The part of an Informer that is used here. */
interface WatchedCache<S> {
  readonly cache: Pick<Lister<S>, 'get'>;
  restartWatch(): void;
}

interface PoolFreshnessDeps extends BoundedWaitDeps {
  readonly client: Pick<Client, 'get'>;
  readonly pools: WatchedCache<AddressPool>;
  readonly networks: WatchedCache<ParsedNad>;
  readonly maxStalenessMs: number;
}

const READ_MS = 3_000;

/**
 * Bounds the age of the pool and the NAD from which a pod without a claim gets an address: each is read live at most once per --max-staleness.
 * A watch proves nothing, because an API server that is cut off from etcd sends bookmarks too.
 */
export class PoolFreshness {
  readonly #deps: PoolFreshnessDeps;
  /** By object: the time of the last read that the cache had caught up with. */
  readonly #confirmed = new Map<string, number>();

  constructor(deps: PoolFreshnessDeps) {
    this.#deps = deps;
  }

  /**
   * Confirms that the cached pool and NAD are current.
   * @returns false if a cache was stale; it has caught up since, and the pool must be chosen again
   * @throws {CniError} 11 if the cache does not catch up in time
   * @throws {StatusError | TransportError} if the API server cannot be asked
   */
  async confirm(attachment: Attachment, pool: string, call: RequestContext): Promise<boolean> {
    const { pools, networks } = this.#deps;
    const { nad } = attachment.selection;
    const [isPoolCurrent, isNadCurrent] = await Promise.all([
      this.#confirm({ resource: ADDRESS_POOLS, watched: pools, key: pool }, attachment, call),
      this.#confirm(
        { resource: NETWORK_ATTACHMENT_DEFINITIONS, watched: networks, key: joinKey(nad.namespace, nad.name) },
        attachment,
        call,
      ),
    ]);
    return isPoolCurrent && isNadCurrent;
  }

  async #confirm(checked: CheckedObject, attachment: Attachment, call: RequestContext): Promise<boolean> {
    const { resource, watched, key } = checked;
    const { client, clock, maxStalenessMs } = this.#deps;
    const id = `${resource.plural} ${key}`;
    const now = clock.now();
    if (now - (this.#confirmed.get(id) ?? -Infinity) <= maxStalenessMs) return true;
    const options = { signal: call.signal, deadlineMs: READ_MS };
    const live = await findUnlessGone(client, resource, splitKey(key), options);
    const outdated = watched.cache.get(key);
    const isCurrent = () => isUpToDate(watched.cache.get(key), live);
    const isReplaced = () => watched.cache.get(key)?.metadata.resourceVersion !== outdated?.metadata.resourceVersion;
    const wait = new BoundedWait(this.#deps, attachment.pod.metadata.uid, call);
    let pauses = 0;
    for (; !isCurrent() && !(live === undefined && isReplaced()); pauses++) {
      // the watch of an API server that is current is behind by milliseconds only
      if (pauses === 1) watched.restartWatch();
      await wait.pause(`${resource.kind} ${key} in the cache of this agent is stale`);
    }
    if (isCurrent()) this.#remember(id, now);
    return pauses === 0;
  }

  #remember(id: string, now: number): void {
    for (const [each, at] of this.#confirmed) if (now - at > this.#deps.maxStalenessMs) this.#confirmed.delete(each);
    this.#confirmed.set(id, now);
  }
}

interface CheckedObject {
  readonly resource: Resource;
  readonly watched: WatchedCache<KubeObject>;
  readonly key: string;
}

function isUpToDate(cached: KubeObject | undefined, live: KubeObject | undefined): boolean {
  if (cached === undefined || live === undefined) return cached === live;
  const { resourceVersion: known = '' } = cached.metadata;
  const { resourceVersion: current = '' } = live.metadata;
  return known === current || isNewer(known, current);
}
