import { type KubeObject, objectKey } from '../api/meta.js';
import { Cache, type Indexes } from './cache.js';
import type { Client } from './client.js';
import type { Clock, Random } from './clock.js';
import { messageOf } from './errors.js';
import { type Logger, silentLogger } from './log.js';
import { type KubeMetrics, silentMetrics } from './metrics.js';
import { Reflector } from './reflector.js';
import type { Resource } from './resource.js';

export interface ObjectChange<S> {
  type: 'added' | 'changed' | 'removed';
  /** After the change; of a removed object the last state known. */
  object: S;
  /** What the cache held before; absent for `added`. */
  before?: S;
}

export interface InformerOptions<T extends KubeObject, S extends KubeObject = T> {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Keeps of an object what readers need. It keeps name and namespace. */
  shrink?: (object: T) => S;
  indexes?: Indexes<S>;
  /** The kind may be absent (404): it then counts as empty and is asked for again. */
  optional?: boolean;
  /** A watch that delivers neither an event nor a bookmark for so long is ended and started again. Default: 130 to 150 s. */
  idleMs?: number;
  log?: Logger;
  metrics?: KubeMetrics;
  clock?: Clock;
  random?: Random;
}

/** What is left of an object once it has been read. */
interface TransformedObject<S> {
  key: string;
  version: string;
  /** Undefined where `shrink` failed. */
  object: S | undefined;
}

/** A cache of one kind that follows the API server, and handlers that are told of every change. */
export class Informer<T extends KubeObject, S extends KubeObject = T> {
  readonly cache: Cache<S>;
  readonly #plural: string;
  readonly #shrink: (object: T) => S;
  readonly #log: Logger;
  readonly #metrics: KubeMetrics;
  readonly #reflector: Reflector<T, TransformedObject<S>>;
  readonly #handlers: ((change: ObjectChange<S>) => void)[] = [];
  /** resourceVersion by key: `shrink` need not keep it. */
  readonly #versions = new Map<string, string>();
  readonly #synced: Promise<void>;
  #settleSynced: (error?: Error) => void = () => undefined;
  #hasSynced = false;
  #isServed = true;
  readonly #servedHandlers: (() => void)[] = [];

  constructor(client: Client, resource: Resource<T>, options: InformerOptions<T, S> = {}) {
    const { shrink, indexes, ...rest } = options;
    this.#plural = resource.plural;
    // Without `shrink` S is T: that is what the default of the type parameter says.
    this.#shrink = shrink ?? ((object) => object as KubeObject as S);
    this.#log = (options.log ?? silentLogger).child({ resource: resource.plural });
    this.#metrics = options.metrics ?? silentMetrics;
    this.cache = new Cache<S>(indexes);
    this.#reflector = new Reflector<T, TransformedObject<S>>({
      ...rest,
      client,
      resource,
      transform: (object) => this.#project(object),
      store: {
        replace: (projections) => this.#replace(projections, true),
        upsert: (projection) => this.#upsert(projection),
        remove: ({ key }) => this.#remove(key),
        notServed: () => this.#replace([], false),
      },
    });
    this.#synced = new Promise((resolve, reject) => {
      this.#settleSynced = (error) => (error === undefined ? resolve() : reject(error));
    });
    // Nobody has to wait for it.
    this.#synced.catch(() => undefined);
  }

  /** The first full list is in the cache, and its handlers have run. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** False while the API server does not know the kind: that the cache is empty then says nothing of any object. */
  get isServed(): boolean {
    return this.#isServed;
  }

  /** Called when {@link isServed} changes, after the cache has. Handlers do not throw. */
  onServed(handler: () => void): void {
    this.#servedHandlers.push(handler);
  }

  /** When the server was last heard of (list, event or bookmark), in the clock's ms; 0: never. */
  get lastProgress(): number {
    return this.#reflector.lastProgress;
  }

  /** Handlers only enqueue keys. One that throws is logged and counted. What is cached already is told as `added`. */
  onChange(handler: (change: ObjectChange<S>) => void): void {
    this.#handlers.push(handler);
    for (const object of this.cache.list()) this.#call(handler, { type: 'added', object });
  }

  start(): void {
    this.#reflector.start();
  }

  /** @throws {Error} where it is stopped before its first list */
  synced(): Promise<void> {
    return this.#synced;
  }

  /** Ends the current watch and starts the next one where it stopped, for a caller that knows the cache to be behind. */
  restartWatch(): void {
    this.#reflector.restartWatch();
  }

  /** Resolves when no handler is called any more. */
  async stop(): Promise<void> {
    await this.#reflector.stop();
    this.#settleSynced(new Error(`the informer of ${this.#plural} was stopped before its first list`));
  }

  #project(object: T): TransformedObject<S> {
    const key = objectKey(object);
    const version = object.metadata.resourceVersion ?? '';
    try {
      return { key, version, object: this.#shrink(object) };
    } catch (error) {
      this.#failed(error, key, 'object cannot be read');
      return { key, version, object: undefined };
    }
  }

  #replace(projections: TransformedObject<S>[], isServed: boolean): void {
    const turns = this.#isServed !== isServed;
    // first, for handlers that ask
    this.#isServed = isServed;
    const listed = new Set(projections.map(({ key }) => key));
    for (const key of this.cache.keys()) if (!listed.has(key)) this.#remove(key);
    for (const projection of projections) this.#upsert(projection);
    if (turns) for (const handler of this.#servedHandlers) handler();
    this.#hasSynced = true;
    this.#settleSynced();
  }

  #upsert({ key, version, object }: TransformedObject<S>): void {
    // A relist and a repeated event bring what is known already. One object that cannot be read must not stop the others; what was
    // known of it stays.
    if (object === undefined || (version !== '' && this.#versions.get(key) === version)) return;
    try {
      const before = this.cache.set(object);
      this.#versions.set(key, version);
      this.#tellStored(object, before);
    } catch (error) {
      this.#failed(error, key, 'object cannot be indexed');
    }
  }

  #tellStored(object: S, before: S | undefined): void {
    if (before === undefined) {
      this.#tell({ type: 'added', object });
    } else if (before.metadata.uid === object.metadata.uid) {
      this.#tell({ type: 'changed', object, before });
    } else {
      // Deleted and made anew while no watch ran: another object of the same name.
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
    this.#metrics.handlerFailed(this.#plural);
    this.#log.error({ key, err: error }, `${what}: ${messageOf(error)}`);
  }
}
