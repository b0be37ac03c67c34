import { type KubeObject, type ObjectMeta, objectKey } from '../api/meta.js';
import { apiError } from './api-errors.js';

export interface WatchEvent {
  type: 'set' | 'removed';
  object: KubeObject;
}

/** The objects of a model cluster as its API server stores them, and a log of each kind that watches follow. */
export abstract class ObjectWorld<Objects extends Record<keyof Objects, KubeObject>> {
  readonly log: Readonly<Record<keyof Objects, WatchEvent[]>>;
  readonly #objects: Readonly<Record<keyof Objects, Map<string, KubeObject>>>;
  #version: number;

  constructor(kinds: readonly (keyof Objects)[], version: number) {
    const forKinds = <T>(create: () => T) =>
      Object.fromEntries(kinds.map((kind) => [kind, create()])) as Record<keyof Objects, T>;
    this.log = forKinds(() => []);
    this.#objects = forKinds(() => new Map());
    this.#version = version;
  }

  /** The UID and time of a new object. */
  protected abstract identityOf(
    kind: keyof Objects,
    object: KubeObject,
    version: number,
  ): Required<Pick<ObjectMeta, 'uid' | 'creationTimestamp'>>;

  /** Whether a changed object is removed instead of stored. */
  protected readonly isRemoved: (object: KubeObject) => boolean = () => false;

  /** Grows with every write. */
  get version(): number {
    return this.#version;
  }

  get<K extends keyof Objects>(kind: K, key: string): Objects[K] | undefined {
    return this.#objects[kind].get(key) as Objects[K] | undefined;
  }

  list<K extends keyof Objects>(kind: K): Objects[K][] {
    return [...this.#objects[kind].values()] as Objects[K][];
  }

  create<K extends keyof Objects>(kind: K, object: Objects[K]): Objects[K] {
    const key = objectKey(object);
    if (this.#objects[kind].has(key)) {
      throw apiError(409, 'AlreadyExists', `${String(kind)} ${key} exists`, object.metadata.name);
    }
    const version = ++this.#version;
    const stored = structuredClone(object);
    const identity = this.identityOf(kind, object, version);
    stored.metadata = { ...stored.metadata, ...identity, resourceVersion: String(version) };
    return this.#set(kind, stored);
  }

  /** Changes a copy. A change without effect is no write. */
  update<K extends keyof Objects>(kind: K, key: string, change: (copy: Objects[K]) => void): Objects[K] {
    const found = this.find(kind, key);
    const copy = structuredClone(found);
    change(copy);
    if (JSON.stringify(copy) === JSON.stringify(found)) return found;
    if (this.isRemoved(copy)) return this.removeObject(kind, copy);
    copy.metadata.resourceVersion = String(++this.#version);
    return this.#set(kind, copy);
  }

  protected find<K extends keyof Objects>(kind: K, key: string): Objects[K] {
    const object = this.get(kind, key);
    if (object !== undefined) return object;
    throw apiError(404, 'NotFound', `${String(kind)} ${key} is not found`, key.split('/').pop() ?? '');
  }

  protected removeObject<K extends keyof Objects>(kind: K, object: Objects[K]): Objects[K] {
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
    this.#objects[kind].delete(objectKey(object));
    this.log[kind].push({ type: 'removed', object: { ...object, metadata } });
    return object;
  }

  #set<K extends keyof Objects>(kind: K, object: Objects[K]): Objects[K] {
    this.#objects[kind].set(objectKey(object), object);
    this.log[kind].push({ type: 'set', object });
    return object;
  }
}
