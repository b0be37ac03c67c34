import { type KubeObject, objectKey } from '../api/meta.js';

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
  /** Index → value → keys. */
  readonly #indexes = new Map<string, Map<string, Set<string>>>();

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
    const found: S[] = [];
    for (const key of values.get(value) ?? []) {
      const object = this.#objects.get(key);
      if (object !== undefined) found.push(object);
    }
    return found;
  }

  /** Returns the number of objects that {@link byIndex} returns. */
  countByIndex(index: string, value: string): number {
    return this.#indexes.get(index)?.get(value)?.size ?? 0;
  }

  /** @returns the object that was there before */
  set(object: S): S | undefined {
    const key = objectKey(object);
    const before = this.#objects.get(key);
    // Everything that may throw comes first: if an indexer fails, the cache stays as it was.
    const after = this.#valuesOf(object);
    if (before !== undefined) this.#unindex(key, before);
    this.#objects.set(key, object);
    for (const [index, value] of after) this.#entry(index, value).add(key);
    return before;
  }

  /** @returns the object that was there */
  delete(key: string): S | undefined {
    const before = this.#objects.get(key);
    if (before === undefined) return undefined;
    this.#unindex(key, before);
    this.#objects.delete(key);
    return before;
  }

  #valuesOf(object: S): [string, string][] {
    return Object.entries(this.#indexers).flatMap(([index, valuesOf]) =>
      valuesOf(object).map((value): [string, string] => [index, value]),
    );
  }

  #entry(index: string, value: string): Set<string> {
    const values = this.#indexes.get(index) ?? new Map<string, Set<string>>();
    const keys = values.get(value) ?? new Set<string>();
    values.set(value, keys);
    return keys;
  }

  #unindex(key: string, object: S): void {
    for (const [index, value] of this.#valuesOf(object)) {
      const values = this.#indexes.get(index);
      const keys = values?.get(value);
      keys?.delete(key);
      if (keys?.size === 0) values?.delete(value);
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
