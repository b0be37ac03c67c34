import { joinKey, splitKey } from '../../api/meta.js';

/** The parts of a key. `namespace` is empty if the key has none. */
export interface KeyParts {
  readonly namespace: string;
  readonly name: string;
}

/**
 * A map by `namespace/name`. Within a namespace, the name itself is the key, which is a text of the object anyway: a joined key for each
 * of a hundred thousand objects is as big as a small object.
 */
export class NamespacedMap<V> {
  readonly #namespaces = new Map<string, Map<string, V>>();

  get(key: string): V | undefined {
    return this.at(splitKey(key));
  }

  at({ namespace, name }: KeyParts): V | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  set({ namespace, name }: KeyParts, value: V): void {
    const own = this.#namespaces.get(namespace);
    if (own === undefined) this.#namespaces.set(namespace, new Map([[name, value]]));
    else own.set(name, value);
  }

  delete({ namespace, name }: KeyParts): void {
    const own = this.#namespaces.get(namespace);
    own?.delete(name);
    if (own?.size === 0) this.#namespaces.delete(namespace);
  }

  get size(): number {
    let size = 0;
    for (const own of this.#namespaces.values()) size += own.size;
    return size;
  }

  values(): V[] {
    return [...this.#namespaces.values()].flatMap((own) => [...own.values()]);
  }

  inNamespace(namespace: string): V[] {
    return [...(this.#namespaces.get(namespace)?.values() ?? [])];
  }

  keys(): string[] {
    return [...this.#namespaces].flatMap(([namespace, own]) => [...own.keys()].map((name) => joinKey(namespace, name)));
  }
}
