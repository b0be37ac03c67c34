import jsonpatch, { type Operation } from 'fast-json-patch';
import type { KubeObject } from '../../api/meta.js';
import { apiError, type Preconditions, checkPreconditions } from '../../test/api-errors.js';
import { mergePatch } from '../../test/merge-patch.js';

export interface StoredEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly version: number;
  readonly object: KubeObject;
}

/** The objects below one path, such as `/api/v1/pods`, by `namespace/name`. Stored objects never change, and may share parts. */
export class Collection {
  readonly objects = new Map<string, KubeObject>();
  /** All writes, in order. */
  readonly events: StoredEvent[] = [];
  readonly watchers = new Set<(event: StoredEvent) => void>();
}

/** All objects of a simulated API server, under its rules for names, resourceVersions and finalizers. */
export class MemoryStore {
  readonly #collections = new Map<string, Collection>();
  #version = 1;

  /** Grows with every write. */
  get version(): number {
    return this.#version;
  }

  collection(path: string): Collection {
    const found = this.#collections.get(path) ?? new Collection();
    this.#collections.set(path, found);
    return found;
  }

  /** Stores an object that exists before the first request, with the identity that it has. */
  seed(path: string, object: KubeObject): void {
    const resourceVersion = String(++this.#version);
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion } };
    this.collection(path).objects.set(keyOf(object), stored);
  }

  /** @throws {StatusError} 404 */
  get(path: string, key: string): KubeObject {
    const found = this.collection(path).objects.get(key);
    if (found === undefined) throw apiError(404, 'NotFound', `${path} ${key} is not found`, key);
    return found;
  }

  /** @throws {StatusError} 409 AlreadyExists */
  create(path: string, given: KubeObject): KubeObject {
    const next = String(this.#version + 1);
    const { generateName } = given.metadata as { generateName?: string };
    const name = generateName === undefined ? given.metadata.name : `${generateName}${next}`;
    const identity = { name, uid: `uid-${next}`, creationTimestamp: new Date().toISOString() };
    const object = { ...given, metadata: { ...given.metadata, ...identity } };
    if (this.collection(path).objects.has(keyOf(object))) throw apiError(409, 'AlreadyExists', 'AlreadyExists', name);
    return this.#store(path, 'ADDED', object);
  }

  /** @throws {StatusError} 404, and 409 if a precondition does not hold */
  replace(path: string, key: string, object: KubeObject): KubeObject {
    const { uid, creationTimestamp } = this.#check(path, key, object.metadata).metadata;
    return this.#change(path, { ...object, metadata: { ...object.metadata, uid, creationTimestamp } } as KubeObject);
  }

  /** Merges a patch, or applies the operations of a JSON patch. @throws {StatusError} 404, 409 */
  patch(path: string, key: string, patch: object): KubeObject {
    const copy = structuredClone(this.get(path, key));
    if (Array.isArray(patch)) jsonpatch.applyPatch(copy, patch as Operation[], true);
    else mergePatch(copy, patch);
    this.#check(path, key, copy.metadata);
    return this.#change(path, copy);
  }

  /** @throws {StatusError} 404, 409 */
  remove(path: string, key: string, preconditions?: Preconditions): KubeObject {
    const found = this.#check(path, key, preconditions);
    if ((found.metadata.finalizers ?? []).length === 0) return this.#store(path, 'DELETED', found);
    const metadata = { ...found.metadata, deletionTimestamp: new Date().toISOString() };
    return this.#store(path, 'MODIFIED', { ...found, metadata });
  }

  #check(path: string, key: string, preconditions?: Preconditions): KubeObject {
    const found = this.get(path, key);
    checkPreconditions(found, preconditions);
    return found;
  }

  #change(path: string, object: KubeObject): KubeObject {
    const { deletionTimestamp, finalizers = [] } = object.metadata;
    return this.#store(
      path,
      deletionTimestamp !== undefined && finalizers.length === 0 ? 'DELETED' : 'MODIFIED',
      object,
    );
  }

  #store(path: string, type: StoredEvent['type'], given: KubeObject): KubeObject {
    const version = ++this.#version;
    const object = { ...given, metadata: { ...given.metadata, resourceVersion: String(version) } };
    const { objects, events, watchers } = this.collection(path);
    if (type === 'DELETED') objects.delete(keyOf(object));
    else objects.set(keyOf(object), object);
    const event = { type, version, object };
    events.push(event);
    for (const watcher of watchers) watcher(event);
    return object;
  }
}

function keyOf({ metadata: { namespace = '', name } }: KubeObject): string {
  return `${namespace}/${name}`;
}
