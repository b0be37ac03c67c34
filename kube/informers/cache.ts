import { type KubeObject, type ObjectMeta, splitKey } from '../../api/meta.js';
import { type KeyParts, NamespacedMap } from './namespaced-map.js';

/** For each index, the function that returns the values under which an object is found: texts, or the parts of `namespace/name`. */
export type Indexes<S> = Record<string, (object: S) => readonly (string | KeyParts)[]>;

/** The read-only part of a cache. */
export interface Lister<S> {
  get(key: string): S | undefined;
  byIndex(index: string, value: string): readonly S[];
}

export interface NamespacedLister<S> extends Lister<S> {
  /** Returns the objects of a namespace. */
  inNamespace(namespace: string): readonly S[];
}

/** Stores objects by key (`namespace/name`) and by named indexes. Readers must not change the objects. */
export class Cache<S extends KubeObject> {
  readonly #objects = new NamespacedMap<S>();
  readonly #indexers: readonly [string, Indexes<S>[string]][];
  /** By index. Most values have one object, and a set of one is as big as the object itself. */
  readonly #indexes = new Map<string, NamespacedMap<S | Set<S>>>();

  constructor(indexes: Indexes<S> = {}) {
    this.#indexers = Object.entries(indexes);
    for (const [name] of this.#indexers) this.#indexes.set(name, new NamespacedMap());
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): S | undefined {
    return this.#objects.get(key);
  }

  /** Returns the object with this name and namespace. */
  of({ namespace = '', name }: Pick<ObjectMeta, 'name' | 'namespace'>): S | undefined {
    return this.#objects.at({ namespace, name });
  }

  list(): readonly S[] {
    return this.#objects.values();
  }

  keys(): readonly string[] {
    return this.#objects.keys();
  }

  inNamespace(namespace: string): readonly S[] {
    return this.#objects.inNamespace(namespace);
  }

  /** @throws {TypeError} if there is no such index */
  byIndex(index: string, value: string): readonly S[] {
    const found = this.#find(index, value);
    if (found === undefined) return [];
    return found instanceof Set ? [...found] : [found];
  }

  /** Returns the number of objects that {@link byIndex} returns. */
  countByIndex(index: string, value: string): number {
    const found = this.#find(index, value);
    if (found === undefined) return 0;
    return found instanceof Set ? found.size : 1;
  }

  /** @returns the object that was there before */
  set(object: S): S | undefined {
    const { namespace = '', name } = object.metadata;
    const key = { namespace, name };
    const before = this.#objects.at(key);
    // Everything that may throw comes first: if an indexer fails, the cache stays as it was.
    const after = this.#valuesOf(object);
    if (before !== undefined) this.#unindex(before);
    this.#objects.set(key, object);
    for (const [index, value] of after) this.#index(index, value, object);
    return before;
  }

  /** @returns the object that was there */
  delete(key: string): S | undefined {
    const before = this.#objects.get(key);
    if (before === undefined) return undefined;
    this.#unindex(before);
    this.#objects.delete(splitKey(key));
    return before;
  }

  #find(index: string, value: string): S | Set<S> | undefined {
    const values = this.#indexes.get(index);
    if (values === undefined)
      throw new TypeError(`no index "${index}"; there are: ${[...this.#indexes.keys()].join(', ')}`);
    return values.get(value);
  }

  #valuesOf(object: S): [string, KeyParts][] {
    const found: [string, KeyParts][] = [];
    for (const [index, valuesOf] of this.#indexers)
      for (const value of valuesOf(object)) found.push([index, typeof value === 'string' ? splitKey(value) : value]);
    return found;
  }

  #index(index: string, value: KeyParts, object: S): void {
    const values = this.#indexes.get(index);
    const others = values?.at(value);
    if (others instanceof Set) others.add(object);
    else values?.set(value, others === undefined || others === object ? object : new Set([others, object]));
  }

  #unindex(object: S): void {
    for (const [index, value] of this.#valuesOf(object)) {
      const values = this.#indexes.get(index);
      const found = values?.at(value);
      if (found instanceof Set) found.delete(object);
      if (found === object || (found instanceof Set && found.size === 0)) values?.delete(value);
    }
  }
}

/** Sets an entry as the most recent one, and deletes the least recent entries beyond `limit`. */
export function setMostRecent<V>(entries: Map<string, V>, key: string, value: V, limit: number): void {
  entries.delete(key);
  entries.set(key, value);
  for (const oldest of entries.keys()) {
    if (entries.size <= limit) return;
    entries.delete(oldest);
  }
}
