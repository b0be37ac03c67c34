import { type KubeObject, objectKey } from '../../api/meta.js';

/** Returns the values under which an object is found. */
interface Index<S> {
  (object: S): readonly string[];
  /** The values are names in the namespace of the object. {@link Lister.byIndex} finds them as `namespace/name`. */
  readonly isNamespaced?: true;
}

export type Indexes<S> = Record<string, Index<S>>;

/** Returns an index that needs no texts of its own, because objects have the names anyway. */
export function namespacedIndex<S>(namesOf: (object: S) => readonly string[]): Index<S> {
  return Object.assign((object: S) => namesOf(object), { isNamespaced: true as const });
}

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
  readonly #indexers: Indexes<S>;
  /** By index. Most values have one object, and a set of one is as big as the object itself. */
  readonly #indexes = new Map<string, NamespacedMap<S | Set<S>>>();

  constructor(indexes: Indexes<S> = {}) {
    this.#indexers = indexes;
    for (const name of Object.keys(indexes)) this.#indexes.set(name, new NamespacedMap());
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): S | undefined {
    return this.#objects.get(...namespaceAndName(key));
  }

  list(): readonly S[] {
    return [...this.#objects.values()];
  }

  keys(): readonly string[] {
    return [...this.#objects.values()].map(objectKey);
  }

  inNamespace(namespace: string): readonly S[] {
    return [...this.#objects.inNamespace(namespace)];
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
    const before = this.#objects.get(namespace, name);
    // Everything that may throw comes first: if an indexer fails, the cache stays as it was.
    const after = this.#valuesOf(object);
    if (before !== undefined) this.#unindex(before);
    this.#objects.set(namespace, name, object);
    for (const [index, scope, value] of after) this.#index(index, scope, value, object);
    return before;
  }

  /** @returns the object that was there */
  delete(key: string): S | undefined {
    const [namespace, name] = namespaceAndName(key);
    const before = this.#objects.get(namespace, name);
    if (before === undefined) return undefined;
    this.#unindex(before);
    this.#objects.delete(namespace, name);
    return before;
  }

  #find(index: string, value: string): S | Set<S> | undefined {
    const values = this.#indexes.get(index);
    if (values === undefined)
      throw new TypeError(`no index "${index}"; there are: ${[...this.#indexes.keys()].join(', ')}`);
    return this.#indexers[index]?.isNamespaced ? values.get(...namespaceAndName(value)) : values.get('', value);
  }

  /** Returns the index, the namespace or '', and the value. */
  #valuesOf(object: S): [string, string, string][] {
    return Object.entries(this.#indexers).flatMap(([index, valuesOf]) => {
      const scope = valuesOf.isNamespaced ? (object.metadata.namespace ?? '') : '';
      return valuesOf(object).map((value): [string, string, string] => [index, scope, value]);
    });
  }

  #index(index: string, scope: string, value: string, object: S): void {
    const values = this.#indexes.get(index);
    const others = values?.get(scope, value);
    if (others instanceof Set) others.add(object);
    else values?.set(scope, value, others === undefined || others === object ? object : new Set([others, object]));
  }

  #unindex(object: S): void {
    for (const [index, scope, value] of this.#valuesOf(object)) {
      const values = this.#indexes.get(index);
      const found = values?.get(scope, value);
      if (found instanceof Set) found.delete(object);
      if (found === object || (found instanceof Set && found.size === 0)) values?.delete(scope, value);
    }
  }
}

/** Values by namespace and name. One map of `namespace/name` would keep a text for each value that nothing else needs. */
class NamespacedMap<V> {
  readonly #namespaces = new Map<string, Map<string, V>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(namespace: string, name: string): V | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  set(namespace: string, name: string, value: V): void {
    const names = this.#namespaces.get(namespace) ?? new Map<string, V>();
    this.#size -= names.size;
    names.set(name, value);
    this.#size += names.size;
    if (names.size === 1) this.#namespaces.set(namespace, names);
  }

  delete(namespace: string, name: string): void {
    const names = this.#namespaces.get(namespace);
    if (names?.delete(name) !== true) return;
    this.#size--;
    if (names.size === 0) this.#namespaces.delete(namespace);
  }

  *values(): Generator<V> {
    for (const names of this.#namespaces.values()) yield* names.values();
  }

  inNamespace(namespace: string): Iterable<V> {
    return this.#namespaces.get(namespace)?.values() ?? [];
  }
}

/** The namespace is '' for objects of the cluster. */
function namespaceAndName(key: string): [string, string] {
  const slash = key.indexOf('/');
  return [key.slice(0, Math.max(slash, 0)), key.slice(slash + 1)];
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
