import { type KubeObject, objectKey } from '../../api/meta.js';

/** For each index, the function that returns the values under which an object is found. */
export type Indexes<S> = Record<string, (object: S) => readonly string[]>;

/** The read-only part of a cache. */
export interface Lister<S> {
  get(key: string): S | undefined;
  byIndex(index: string, value: string): readonly S[];
}

/** Stores objects by key (`namespace/name`) and by named indexes. Readers must not change the objects. */
export class Cache<S extends KubeObject> {
  readonly #objects = new Map<string, S>();
  readonly #indexers: Indexes<S>;
  /** Index → value → objects. Most values have one object, and a set of one is as big as the object itself. */
  readonly #indexes = new Map<string, Map<string, S | Set<S>>>();

  constructor(indexes: Indexes<S> = {}) {
    this.#indexers = indexes;
    for (const name of Object.keys(indexes)) this.#indexes.set(name, new Map());
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): S | undefined {
    return this.#objects.get(key);
  }

  list(): readonly S[] {
    return [...this.#objects.values()];
  }

  keys(): readonly string[] {
    return [...this.#objects.keys()];
  }

  /** @throws {TypeError} if there is no such index */
  byIndex(index: string, value: string): readonly S[] {
    const values = this.#indexes.get(index);
    if (values === undefined)
      throw new TypeError(`no index "${index}"; there are: ${[...this.#indexes.keys()].join(', ')}`);
    const found = values.get(value);
    if (found === undefined) return [];
    return found instanceof Set ? [...found] : [found];
  }

  /** Returns the number of objects that {@link byIndex} returns. */
  countByIndex(index: string, value: string): number {
    const found = this.#indexes.get(index)?.get(value);
    if (found === undefined) return 0;
    return found instanceof Set ? found.size : 1;
  }

  /** @returns the object that was there before */
  set(object: S): S | undefined {
    const key = objectKey(object);
    const before = this.#objects.get(key);
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
    this.#objects.delete(key);
    return before;
  }

  #valuesOf(object: S): [string, string][] {
    return Object.entries(this.#indexers).flatMap(([index, valuesOf]) =>
      valuesOf(object).map((value): [string, string] => [index, value]),
    );
  }

  #index(index: string, value: string, object: S): void {
    const values = this.#indexes.get(index);
    const others = values?.get(value);
    if (others instanceof Set) others.add(object);
    else values?.set(value, others === undefined || others === object ? object : new Set([others, object]));
  }

  #unindex(object: S): void {
    for (const [index, value] of this.#valuesOf(object)) {
      const values = this.#indexes.get(index);
      const found = values?.get(value);
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
