import { isDeepStrictEqual } from 'node:util';
import { type KubeObject, joinKey, objectKey } from '../../api/meta.js';
import type { ObjectRef, Resource } from '../resource.js';
import { hasStatus, isOver, specOf, withMeta, withStatusOf } from './object-fields.js';
import {
  ALREADY_EXISTS,
  EXPIRED,
  INVALID,
  NOT_FOUND,
  type Preconditions,
  checkPreconditions,
  refusal,
  statusOf,
} from './refusals.js';
import { type Selectors, selectorOf } from './selectors.js';

/** A kind in any version, with the type of its objects. */
export type Kind<T extends KubeObject = KubeObject> = Pick<Resource<T>, 'group' | 'plural' | '_type'>;

/** A write that has happened. */
export interface TrackedEvent<T extends KubeObject = KubeObject> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly version: number;
  /** A deleted object: its last state. */
  readonly object: T;
  readonly before: T | undefined;
}

/** An event of a watch, as it is sent. */
export interface WatchEvent {
  readonly type: TrackedEvent['type'] | 'BOOKMARK' | 'ERROR';
  readonly object: object;
}

/** A valid write that nobody has stored yet. */
export interface Admission {
  readonly verb: 'create' | 'update' | 'delete';
  readonly kind: Kind;
  readonly subresource: string | undefined;
  readonly before: KubeObject | undefined;
  /** undefined: deleted. */
  readonly after: KubeObject | undefined;
}

export interface WriteRequest {
  readonly subresource?: string | undefined;
  readonly dryRun?: boolean | undefined;
}

export interface DeleteRequest extends Preconditions, WriteRequest {
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground' | undefined;
}

export interface TrackerOptions {
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Default: `uid-` and the version. */
  readonly uidOf?: (kind: Kind, object: KubeObject, version: number) => string;
}

const PROPAGATION_FINALIZERS = { Foreground: ['foregroundDeletion'], Orphan: ['orphan'], Background: [] };
/** One digit before the next: versions are no text. */
const FIRST_VERSION = 95;

/** The objects of one kind, and all writes of them. */
class Collection {
  readonly objects = new Map<string, KubeObject>();
  readonly events: TrackedEvent[] = [];
  readonly observers = new Set<(event: TrackedEvent) => void>();
}

/**
 * Objects under the rules of kube-apiserver for names, versions, preconditions, finalizers, statuses, generations and watches, as client-go's
 * object tracker. It stores objects as they are given and never changes one: each write is another object.
 */
export class ObjectTracker {
  /** Called before each write is stored. An error that it throws rejects the write. */
  admit: (admission: Admission) => void = () => undefined;
  readonly #collections = new Map<string, Collection>();
  readonly #now: () => number;
  readonly #uidOf: NonNullable<TrackerOptions['uidOf']>;
  #version = FIRST_VERSION;
  #compacted = FIRST_VERSION;

  constructor(options: TrackerOptions = {}) {
    this.#now = options.now ?? Date.now;
    this.#uidOf = options.uidOf ?? ((_kind, _object, version) => `uid-${version}`);
  }

  /** Grows with every write. */
  get version(): number {
    return this.#version;
  }

  /** By `namespace/name`, or the name of cluster-scoped objects. */
  objects<T extends KubeObject>(kind: Kind<T>): ReadonlyMap<string, T> {
    return this.#of(kind).objects as ReadonlyMap<string, KubeObject> as ReadonlyMap<string, T>;
  }

  /** All writes since the last compaction, in order. */
  events<T extends KubeObject>(kind: Kind<T>): readonly TrackedEvent<T>[] {
    return this.#of(kind).events as readonly TrackedEvent[] as readonly TrackedEvent<T>[];
  }

  find<T extends KubeObject>(kind: Kind<T>, ref: ObjectRef): T | undefined {
    return this.objects(kind).get(joinKey(ref.namespace, ref.name));
  }

  /** @throws {StatusError} 404 */
  get<T extends KubeObject>(kind: Kind<T>, ref: ObjectRef): T {
    const found = this.find(kind, ref);
    if (found === undefined) throw refusal(kind, ref.name, NOT_FOUND, 'not found');
    return found;
  }

  /** Selected objects, sorted by key as etcd sorts them. */
  list<T extends KubeObject>(kind: Kind<T>, selectors: Selectors = {}): T[] {
    const selected = selectorOf(kind, selectors);
    const found = [...this.objects(kind)].filter(([, object]) => selected(object));
    return found.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  /** Stores objects as they are, with a new version, and a UID if they have none. */
  put<T extends KubeObject>(kind: Kind<T>, ...objects: readonly T[]): void {
    for (const object of objects) {
      const before = this.find(kind, object.metadata);
      const uid = object.metadata.uid ?? before?.metadata.uid ?? this.#uidOf(kind, object, this.#version + 1);
      this.#store(kind, before, withMeta(object, { uid }));
    }
  }

  /** Changes a copy in any way, its status too. A change without effect is no write. @throws {StatusError} 404 */
  change<T extends KubeObject>(kind: Kind<T>, ref: ObjectRef, change: (copy: T) => void): T {
    const before = this.get(kind, ref);
    const after = structuredClone(before);
    change(after);
    if (isDeepStrictEqual(after, before)) return before;
    return (isOver(after) ? this.#removeObject(kind, after) : this.#store(kind, before, after)) as T;
  }

  /** Removes an object, also one with finalizers. */
  remove(kind: Kind, ref: ObjectRef): void {
    const found = this.find(kind, ref);
    if (found !== undefined) this.#removeObject(kind, found);
  }

  /** @throws {StatusError} 409 AlreadyExists, 422 Invalid */
  create<T extends KubeObject>(kind: Kind<T>, given: T, { dryRun = false }: WriteRequest = {}): T {
    const next = this.#version + 1;
    const { generateName } = given.metadata;
    const name = given.metadata.name || (generateName === undefined ? '' : `${generateName}${next}`);
    if (name === '') throw refusal(kind, '', INVALID, 'is invalid: metadata.name: Required value');
    const object = withMeta(hasStatus(kind) ? withStatusOf(given) : given, {
      name,
      uid: this.#uidOf(kind, given, next),
      creationTimestamp: this.#time(),
      generation: hasStatus(kind) ? 1 : undefined,
      deletionTimestamp: undefined,
      resourceVersion: undefined,
    });
    if (this.find(kind, object.metadata)) throw refusal(kind, name, ALREADY_EXISTS, 'already exists');
    this.admit({ verb: 'create', kind, subresource: undefined, before: undefined, after: object });
    return (dryRun ? object : this.#store(kind, undefined, object)) as T;
  }

  /**
   * Stores a changed object. Its resourceVersion, if it has one, is a precondition. A change without effect is no write.
   * @param change returns another object
   * @throws {StatusError} 404, 409 Conflict, 422 Invalid
   */
  update<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    change: (found: T) => T,
    { subresource, dryRun = false }: WriteRequest = {},
  ): T {
    const before = this.get(kind, ref);
    if (subresource === 'status' && !hasStatus(kind)) throw refusal(kind, '', NOT_FOUND, 'has no status');
    const given = change(before);
    checkPreconditions(kind, before, { resourceVersion: given.metadata.resourceVersion });
    const after = this.#changed(kind, before, given, subresource);
    if (isDeepStrictEqual(after, before)) return before;
    this.admit({ verb: 'update', kind, subresource, before, after });
    if (dryRun) return after as T;
    return (isOver(after) ? this.#removeObject(kind, after) : this.#store(kind, before, after)) as T;
  }

  /**
   * @returns the object, which still exists if it has finalizers
   * @throws {StatusError} 404, 409 Conflict
   */
  delete<T extends KubeObject>(kind: Kind<T>, ref: ObjectRef, request: DeleteRequest = {}): T {
    const before = this.get(kind, ref);
    checkPreconditions(kind, before, request);
    this.admit({ verb: 'delete', kind, subresource: undefined, before, after: undefined });
    if (request.dryRun) return before;
    const more = PROPAGATION_FINALIZERS[request.propagationPolicy ?? 'Background'];
    const finalizers = [...new Set([...(before.metadata.finalizers ?? []), ...more])];
    if (finalizers.length === 0) return this.#removeObject(kind, before) as T;
    const { deletionTimestamp = this.#time(), generation } = before.metadata;
    const isFirst = before.metadata.deletionTimestamp === undefined;
    const counted = isFirst && generation !== undefined ? { generation: generation + 1 } : {};
    const after = withMeta(before, { finalizers, deletionTimestamp, ...counted });
    return isDeepStrictEqual(after, before) ? before : (this.#store(kind, before, after) as T);
  }

  /** Calls the handler with each later write of a kind. @returns what ends it */
  observe<T extends KubeObject>(kind: Kind<T>, handler: (event: TrackedEvent<T>) => void): () => void {
    const { observers } = this.#of(kind);
    const observer = handler as (event: TrackedEvent) => void;
    observers.add(observer);
    return () => observers.delete(observer);
  }

  /**
   * Calls the handler with the events of a watch: at once with those since the version, then with each later one.
   * @param from a resourceVersion; absent or 0: first, all objects are sent
   * @returns what ends it
   */
  watch(kind: Kind, from: string | undefined, selectors: Selectors, handler: (event: WatchEvent) => void): () => void {
    const selected = selectorOf(kind, selectors);
    const send = ({ type, object, before }: TrackedEvent) => {
      const was = before !== undefined && selected(before);
      const is = type !== 'DELETED' && selected(object);
      if (is) handler({ type: was ? 'MODIFIED' : 'ADDED', object });
      else if (was) handler({ type: 'DELETED', object });
    };
    const since = Number(from ?? 0);
    if (since === 0) for (const object of this.list(kind, selectors)) handler({ type: 'ADDED', object });
    else if (since < this.#compacted)
      handler({ type: 'ERROR', object: statusOf(refusal(kind, '', EXPIRED, `too old resource version: ${since}`)) });
    else for (const event of this.#of(kind).events) if (event.version > since) send(event);
    return this.observe(kind, send);
  }

  /** Forgets all events: watches and lists cannot continue from earlier versions. */
  compact(): void {
    this.#compacted = this.#version;
    for (const { events } of this.#collections.values()) events.length = 0;
  }

  isCompacted(version: number): boolean {
    return version < this.#compacted;
  }

  /** What the server makes of a given object: the fields that it sets itself stay, and only one of status and the rest changes. */
  #changed(kind: Kind, before: KubeObject, given: KubeObject, subresource: string | undefined): KubeObject {
    // custom resources ignore the metadata
    if (subresource === 'status') return withStatusOf(before, given);
    // unlike for PUT and DELETE, the UID in a patch is no precondition
    if ((given.metadata.uid ?? before.metadata.uid) !== before.metadata.uid)
      throw refusal(kind, before.metadata.name, INVALID, 'is invalid: metadata.uid: Invalid value: field is immutable');
    const object = hasStatus(kind) ? withStatusOf(given, before) : given;
    const { namespace, name, uid, resourceVersion, creationTimestamp, deletionTimestamp, generation } = before.metadata;
    const kept = { namespace, name, uid, resourceVersion, creationTimestamp, deletionTimestamp, generation };
    if (generation !== undefined && !isDeepStrictEqual(specOf(object), specOf(before)))
      kept.generation = generation + 1;
    const after = withMeta(object, kept);
    const { finalizers: known = [] } = before.metadata;
    const added = (after.metadata.finalizers ?? []).filter((finalizer) => !known.includes(finalizer));
    if (deletionTimestamp !== undefined && added.length > 0) {
      const message = `metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ${added.join()}`;
      throw refusal(kind, name, INVALID, message);
    }
    return after;
  }

  #store(kind: Kind, before: KubeObject | undefined, given: KubeObject): KubeObject {
    const object = withMeta(given, { resourceVersion: String(++this.#version) });
    this.#of(kind).objects.set(objectKey(object), object);
    return this.#record(kind, { type: before === undefined ? 'ADDED' : 'MODIFIED', object, before });
  }

  #removeObject(kind: Kind, given: KubeObject): KubeObject {
    const object = withMeta(given, { resourceVersion: String(++this.#version) });
    const { objects } = this.#of(kind);
    const before = objects.get(objectKey(object));
    objects.delete(objectKey(object));
    return this.#record(kind, { type: 'DELETED', object, before });
  }

  #record(kind: Kind, happened: Omit<TrackedEvent, 'version'>): KubeObject {
    const { events, observers } = this.#of(kind);
    const event = { ...happened, version: this.#version };
    events.push(event);
    for (const observer of [...observers]) observer(event);
    return event.object;
  }

  #of({ group, plural }: Kind): Collection {
    const name = `${plural}.${group}`;
    const found = this.#collections.get(name) ?? new Collection();
    this.#collections.set(name, found);
    return found;
  }

  #time(): string {
    return new Date(this.#now()).toISOString().replace(/\.\d+Z$/, 'Z');
  }
}
