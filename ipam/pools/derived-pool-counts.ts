import type { AddressPool } from '../../api/address-pool.js';
import { BY_NAD_NAMESPACE } from '../../cluster/indexes.js';
import type { Lister } from '../../kube/cache.js';

/** Counts the derived pools of namespaces, also those that the cache does not show yet. */
export class DerivedPoolCounts {
  readonly #pools: Lister<AddressPool>;
  /** Namespaces of pools that are being created here, by name, until their sync sees the cache show them. */
  readonly #created = new Map<string, string>();

  constructor(pools: Lister<AddressPool>) {
    this.#pools = pools;
  }

  of(namespace: string): number {
    let count = this.#pools.byIndex(BY_NAD_NAMESPACE, namespace).length;
    for (const [pool, of] of this.#created) if (of === namespace && this.#pools.get(pool) === undefined) count++;
    return count;
  }

  /** To be called before the pool is created, because other workers create pools meanwhile. */
  add(pool: string, namespace: string): void {
    this.#created.set(pool, namespace);
  }

  /** To be called when the cache shows the pool, or shows it no more, or it could not be created. */
  observed(pool: string): void {
    this.#created.delete(pool);
  }
}
