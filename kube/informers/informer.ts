import { type KubeObject, type ObjectMeta, objectKey } from '../../api/meta.js';
import { Cache, type Indexes } from './cache.js';
import type { Client } from '../client.js';
import { type Clock, systemClock } from '../clock.js';
import { messageOf } from '../errors.js';
import type { HistoryGuard } from './history-guard.js';
import { type Logger, silentLogger } from '../log.js';
import { type KubeMetrics, silentMetrics } from '../metrics.js';
import { type ListVersions, type WatchOptions, Reflector } from './reflector.js';
import type { Resource } from '../resource.js';
import { forEachInSlices } from '../run-in-slices.js';

export interface ObjectChange<S> {
  type: 'added' | 'changed' | 'removed';
  /** The object after the change, or the last known state of a removed object. */
  object: S;
  /** The cached object before the change; absent for `added`. */
  before?: S;
}

export interface InformerOptions<T extends KubeObject, S extends KubeObject = T> extends WatchOptions {
  /** Reduces an object to what readers need, before it is cached. It must keep name and namespace. */
  transform?: (object: T) => S;
  indexes?: Indexes<S>;
}

/** An object after its transform. A list has as many as there are objects, so it has no texts of its own. */
interface TransformedObject<S> {
  metadata: Pick<ObjectMeta, 'name' | 'namespace'>;
  version: string;
  /** Undefined if the transform failed. */
  object: S | undefined;
}

/** A cache of one kind that follows the API server and calls handlers for every change. */
export class Informer<T extends KubeObject, S extends KubeObject = T> {
  readonly cache: Cache<S>;
  readonly #resource: Resource<T>;
  readonly #history: HistoryGuard | undefined;
  readonly #transform: (object: T) => S;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #metrics: KubeMetrics;
  readonly #createReflector: () => Reflector<T, TransformedObject<S>>;
  #reflector: Reflector<T, TransformedObject<S>>;
  /** Resolves when suspended reflectors no longer run; undefined if there were none. */
  #suspended: Promise<unknown> | undefined;
  readonly #handlers: ((change: ObjectChange<S>) => void)[] = [];
  /** resourceVersion by key, of objects whose transform does not keep it. */
  readonly #versions = new Map<string, string>();
  #synced!: Promise<void>;
  #settleSynced: (error?: Error) => void = () => undefined;
  readonly #syncedHandlers: (() => void)[] = [];
  #hasSynced = false;
  #isServed = true;
  readonly #servedHandlers: (() => void)[] = [];
  readonly #listHandlers: ((versions: ListVersions) => () => void)[] = [];

  constructor(client: Client, resource: Resource<T>, options: InformerOptions<T, S> = {}) {
    const { transform, indexes, ...rest } = options;
    this.#resource = resource;
    this.#history = options.history;
    // Without a transform, S is T by the default of the type parameter.
    this.#transform = transform ?? ((object) => object as KubeObject as S);
    this.#clock = options.clock ?? systemClock;
    this.#log = (options.log ?? silentLogger).child({ resource: resource.plural });
    this.#metrics = options.metrics ?? silentMetrics;
    this.cache = new Cache<S>(indexes);
    const store = {
      replace: async (projections: TransformedObject<S>[], versions: ListVersions, signal: AbortSignal) => {
        const ends = this.#listHandlers.map((handler) => handler(versions));
        await this.#replace(projections, true, signal);
        if (!signal.aborted) for (const end of ends) end();
      },
      upsert: (projection: TransformedObject<S>) => this.#upsert(projection),
      remove: (projection: TransformedObject<S>) => this.#remove(objectKey(projection)),
      notServed: (signal: AbortSignal) => this.#replace([], false, signal),
    };
    this.#createReflector = () =>
      new Reflector({ ...rest, client, resource, transform: (object) => this.#project(object), store });
    this.#reflector = this.#createReflector();
    this.#expectSync();
  }

  /** True when the first complete list is in the cache and the handlers have run. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** False while the API server does not serve the kind: the empty cache then says nothing about any object. */
  get isServed(): boolean {
    return this.#isServed;
  }

  /** Registers a handler, called after each time that {@link hasSynced} becomes true. It does not throw. */
  onSynced(handler: () => void): void {
    this.#syncedHandlers.push(handler);
  }

  /** Registers a handler for changes of {@link isServed}, called after the cache has changed. Handlers do not throw. */
  onServed(handler: () => void): void {
    this.#servedHandlers.push(handler);
  }

  /** Registers a handler, called before a list changes the cache, and returning what is called afterwards. Neither throws. */
  onList(handler: (versions: ListVersions) => () => void): void {
    this.#listHandlers.push(handler);
  }

  /** When the server last sent a list, event or bookmark, in the clock's ms; 0: never. */
  get lastProgress(): number {
    return this.#reflector.lastProgress;
  }

  /** Registers a handler, which only enqueues keys. Errors of handlers are logged and counted. Cached objects are reported as `added`. */
  onChange(handler: (change: ObjectChange<S>) => void): void {
    this.#handlers.push(handler);
    for (const object of this.cache.list()) this.#call(handler, { type: 'added', object });
  }

  /** Follows the API server, also after {@link suspend}. */
  start(): void {
    const reflector = this.#reflector;
    // two reflectors must not write to the cache
    if (this.#suspended === undefined) reflector.start();
    else void this.#suspended.then(() => reflector.start());
  }

  /** Watches nothing until the next start. The cache keeps its old state until it is listed again: readers ask {@link hasSynced}. */
  suspend(): void {
    this.#suspended = Promise.all([this.#suspended, this.#reflector.stop()]);
    this.#reflector = this.#createReflector();
    if (!this.#hasSynced) return;
    this.#hasSynced = false;
    this.#expectSync();
  }

  /** @throws {Error} if it is stopped before its first list */
  synced(): Promise<void> {
    return this.#synced;
  }

  /** Ends the current watch and continues with a new one, for callers that know that the cache is stale. */
  restartWatch(): void {
    this.#reflector.restartWatch();
  }

  /** Resolves when no more handlers are called. */
  async stop(): Promise<void> {
    await Promise.all([this.#suspended, this.#reflector.stop()]);
    this.#settleSynced(new Error(`the informer of ${this.#resource.plural} was stopped before its first list`));
  }

  #expectSync(): void {
    this.#synced = new Promise((resolve, reject) => {
      this.#settleSynced = (error) => (error === undefined ? resolve() : reject(error));
    });
    // Callers need not wait for it.
    this.#synced.catch(() => undefined);
  }

  #project(object: T): TransformedObject<S> {
    const version = object.metadata.resourceVersion ?? '';
    try {
      const transformed = this.#transform(object);
      return { metadata: transformed.metadata, version, object: transformed };
    } catch (error) {
      this.#failed(error, objectKey(object), 'object cannot be read');
      return { metadata: object.metadata, version, object: undefined };
    }
  }

  /** In slices: between them, readers see a part of the changes, as with a watch. */
  async #replace(projections: TransformedObject<S>[], isServed: boolean, signal: AbortSignal): Promise<void> {
    const turns = this.#isServed !== isServed;
    // first, because handlers may read it
    this.#isServed = isServed;
    const listed = new Set<string>();
    const note = (each: TransformedObject<S>) => {
      this.#compareHistory(each);
      listed.add(objectKey(each));
    };
    const removeUnlisted = (key: string) => {
      if (!listed.has(key)) this.#remove(key);
    };
    const known = this.cache.keys();
    if (known.length > 0) await forEachInSlices(projections, note, this.#clock, signal);
    await forEachInSlices(known, removeUnlisted, this.#clock, signal);
    await forEachInSlices(projections, (projection) => this.#upsert(projection), this.#clock, signal);
    if (signal.aborted) return;
    if (turns) for (const handler of this.#servedHandlers) handler();
    const isFirst = !this.#hasSynced;
    this.#hasSynced = true;
    this.#settleSynced();
    if (isFirst) for (const handler of this.#syncedHandlers) handler();
  }

  /** A restore of etcd may raise the version of lists, but not those of objects. Caches of own writes ignore older versions for ever. */
  #compareHistory({ metadata, version }: TransformedObject<S>): void {
    const seen = this.#versionOf(metadata) ?? version;
    if (seen !== version) this.#history?.compare({ resource: this.#resource }, seen, version);
  }

  #upsert({ metadata, version, object }: TransformedObject<S>): void {
    // Lists and repeated events contain known objects. An object that cannot be read keeps its old state and does not stop the others.
    if (object === undefined || (version !== '' && this.#versionOf(metadata) === version)) return;
    try {
      const before = this.cache.set(object);
      if (object.metadata.resourceVersion === undefined) this.#versions.set(objectKey({ metadata }), version);
      this.#tellStored(object, before);
    } catch (error) {
      this.#failed(error, objectKey({ metadata }), 'object cannot be indexed');
    }
  }

  #versionOf(metadata: TransformedObject<S>['metadata']): string | undefined {
    const known = this.cache.of(metadata);
    return known && (known.metadata.resourceVersion ?? this.#versions.get(objectKey({ metadata })));
  }

  #tellStored(object: S, before: S | undefined): void {
    if (before === undefined) {
      this.#tell({ type: 'added', object });
    } else if (before.metadata.uid === object.metadata.uid) {
      this.#tell({ type: 'changed', object, before });
    } else {
      // Deleted and created again while no watch ran: another object of the same name.
      this.#tell({ type: 'removed', object: before, before });
      this.#tell({ type: 'added', object });
    }
  }

  #remove(key: string): void {
    this.#versions.delete(key);
    const before = this.cache.delete(key);
    if (before !== undefined) this.#tell({ type: 'removed', object: before, before });
  }

  #tell(change: ObjectChange<S>): void {
    for (const handler of this.#handlers) this.#call(handler, change);
  }

  #call(handler: (change: ObjectChange<S>) => void, change: ObjectChange<S>): void {
    try {
      handler(change);
    } catch (error) {
      this.#failed(error, objectKey(change.object), 'handler failed');
    }
  }

  #failed(error: unknown, key: string, what: string): void {
    this.#metrics.handlerFailed(this.#resource.plural);
    this.#log.error({ key, err: error }, `${what}: ${messageOf(error)}`);
  }
}
