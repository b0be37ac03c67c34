import { type KubeObject, isNewer, splitKey } from '../../api/meta.js';
import { findUnlessGone } from '../../kube/absence.js';
import { Cache } from '../../kube/informers/cache.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import type { Resource } from '../../kube/resource.js';

/** After this time, a live read of an ADD has failed: there is still time for an answer from earlier reads. */
export const LIVE_READ_MS = 3_000;

/** The result of a live read. */
export interface CachedRead<T> {
  /** Undefined if the object did not exist. */
  readonly object: T | undefined;
  /** When the read was sent, in the clock's ms. The result is at least as new. */
  readonly at: number;
}

interface ReadCacheDeps {
  readonly client: Pick<Client, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly maxStalenessMs: number;
}

/** Recent live reads of single objects. Nothing is watched, because an agent needs few objects of the cluster, each for a short time. */
export class ReadCache {
  readonly #deps: ReadCacheDeps;
  readonly #seen = new Map<string, CachedRead<KubeObject>>();

  constructor(deps: ReadCacheDeps) {
    this.#deps = deps;
  }

  /** Reads before this time are stale, in the clock's ms. */
  get staleBefore(): number {
    return this.#deps.clock.now() - this.#deps.maxStalenessMs;
  }

  /** Returns the last read of an object. @param key `namespace/name`, or the name; @param since ignores reads before, in the clock's ms */
  get<T extends KubeObject>(resource: Resource<T>, key: string, since = this.staleBefore): CachedRead<T> | undefined {
    const found = this.#seen.get(cacheKey(resource, key));
    // the resource, which determines T, is part of the key
    return found !== undefined && found.at >= since ? (found as CachedRead<T>) : undefined;
  }

  /** Returns all objects of a kind that were read and existed. */
  list<T extends KubeObject>(resource: Resource<T>, since: number): readonly T[] {
    const prefix = cacheKey(resource, '');
    const found: T[] = [];
    for (const [id, { object, at }] of this.#seen) {
      if (object !== undefined && at >= since && id.startsWith(prefix)) found.push(object as T);
    }
    return found;
  }

  /** Reads an object live. @throws {StatusError | TransportError} if the read failed; a missing object is no error */
  async read<T extends KubeObject>(resource: Resource<T>, key: string, signal: AbortSignal): Promise<CachedRead<T>> {
    const { client, clock } = this.#deps;
    const at = clock.now();
    const object = await findUnlessGone(client, resource, splitKey(key), { signal, deadlineMs: LIVE_READ_MS });
    const read = { object, at };
    const id = cacheKey(resource, key);
    // a slower read that was sent earlier must not replace a newer result
    if ((this.#seen.get(id)?.at ?? at) <= at) this.#seen.set(id, read);
    return read;
  }

  evictBefore(time: number): void {
    for (const [id, { at }] of this.#seen) if (at < time) this.#seen.delete(id);
  }
}

function cacheKey({ group, plural }: Resource, key: string): string {
  return `${group}/${plural} ${key}`;
}

interface NamedObjectsDeps<T extends KubeObject, S extends KubeObject> {
  readonly client: Pick<Client, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly resource: Resource<T>;
  /** Reduces an object before it is cached. */
  readonly transform: (object: T) => S;
}

/** How recent a read must be, in the clock's ms, and what ends a new one. */
interface ReadLimits {
  readonly signal: AbortSignal;
  readonly since: number;
}

/**
 * Objects of one kind that are read live by name, and changes that a watch shows, so that versions are compared, not only times as in
 * {@link ReadCache}. Its handler sees each change, as that of an informer does.
 */
export class NamedObjects<T extends KubeObject, S extends KubeObject> {
  readonly cache = new Cache<S>();
  readonly #deps: NamedObjectsDeps<T, S>;
  /** By key: when the last read was sent. The cache is at least as new; an object that it lacks did not exist. */
  readonly #readAt = new Map<string, number>();
  #tell: (change: ObjectChange<S>) => void = () => undefined;

  constructor(deps: NamedObjectsDeps<T, S>) {
    this.#deps = deps;
  }

  /** Sets the handler of changes. */
  onChange(handler: (change: ObjectChange<S>) => void): void {
    this.#tell = handler;
  }

  /** Whether the object was read since then, found or not. */
  wasRead(key: string, since: number): boolean {
    return (this.#readAt.get(key) ?? -Infinity) >= since;
  }

  /** Reads an object, unless it was read since then. @throws {StatusError | TransportError} if the read failed; a missing object is no error */
  async read(key: string, limits: ReadLimits): Promise<S | undefined> {
    if (this.wasRead(key, limits.since)) return this.cache.get(key);
    const { client, clock, resource, transform } = this.#deps;
    const at = clock.now();
    const before = this.cache.get(key);
    const options = { signal: limits.signal, deadlineMs: LIVE_READ_MS };
    const found = await findUnlessGone(client, resource, splitKey(key), options);
    // a slower read that was sent earlier must not replace a newer result
    if (this.wasRead(key, at + 1)) return this.cache.get(key);
    const known = this.cache.get(key);
    // the watch may show an object that was created after this read, or the last versions of one that is gone
    if (found === undefined && known !== before) return this.read(key, limits);
    this.#readAt.set(key, at);
    // only a change during the read can be newer: an older version is that of a restored backup of etcd
    if (found === undefined || known === before || !isOlder(found, known)) this.#set(key, found && transform(found));
    return this.cache.get(key);
  }

  /** Takes a change that a watch shows, unless a read has shown a newer version. */
  observe({ type, object }: ObjectChange<S>, key: string): void {
    if (isOlder(object, this.cache.get(key))) return;
    // what was read is older than this version
    this.#readAt.delete(key);
    this.#set(key, type === 'removed' ? undefined : object);
  }

  /** Whether a read has shown a newer version than a watch shows, or that the object is gone. */
  isOutdated(watched: S, key: string): boolean {
    const known = this.cache.get(key);
    return known === undefined || isOlder(watched, known);
  }

  /** Forgets what was last read before a time, unless a watch shows it. */
  evictBefore(time: number, isWatched: (key: string) => boolean = () => false): void {
    for (const [key, at] of this.#readAt) {
      if (at >= time) continue;
      this.#readAt.delete(key);
      if (!isWatched(key)) this.#set(key, undefined);
    }
  }

  #set(key: string, object: S | undefined): void {
    const before = object === undefined ? this.cache.delete(key) : this.cache.set(object);
    if (object !== undefined) this.#tell({ type: before ? 'changed' : 'added', object, ...(before && { before }) });
    else if (before !== undefined) this.#tell({ type: 'removed', object: before });
  }
}

function isOlder({ metadata }: KubeObject, known: KubeObject | undefined): boolean {
  return known !== undefined && isNewer(known.metadata.resourceVersion ?? '', metadata.resourceVersion ?? '');
}
