import { COUNTS } from '../../addressing/address-states.js';
import type { Family } from '../../addressing/address/address.js';
import { toSafeNumber } from '../../addressing/address/ranges.js';
import { type AddressPool, isAdminPool, nadNamespaceOf } from '../../api/address-pool.js';
import { byAge } from '../../api/meta.js';
import type { Metrics } from '../../process/metrics.js';
import { type FamilyCounts, capacityOf } from './status.js';

/**
 * How many pools that are derived from NADs of one namespace have series. Tenants create NADs: without a bound, one of them could fill the memory of
 * Prometheus, or use up the bound on all derived pools.
 */
export const MAX_DERIVED_POOLS_OF_NAMESPACE = 10;

const FAMILY_LABELS: Readonly<Record<Family, string>> = { 4: 'ipv4', 6: 'ipv6' };

export type PoolMetrics = ReturnType<typeof createPoolMetrics>;

/**
 * Creates the metrics of pools, which only the leader reports. To be called once in a process, because it registers their names.
 * @param maxDerived how many pools that are derived from NADs have series
 */
export function createPoolMetrics(metrics: Pick<Metrics, 'gauge'>, maxDerived: number) {
  const addresses = metrics.gauge('ipam_pool_addresses', 'Addresses of a pool, by state. Their sum is the capacity.', [
    ...(['pool', 'nad_namespace', 'family', 'state'] as const),
  ]);
  const capacity = metrics.gauge('ipam_pool_capacity_addresses', 'Addresses that a pool may allocate.', [
    ...(['pool', 'family'] as const),
  ]);
  const available = metrics.gauge(
    'ipam_pool_available_addresses',
    'Addresses of a pool that a new workload can get: free ones, and if the pool has sticky addresses also those that cool down.',
    [...(['pool', 'nad_namespace', 'family'] as const)],
  );
  const leftOut = metrics.gauge(
    'ipam_pools_left_out',
    'Pools derived from NADs that have no metrics because of --max-derived-pool-metrics, or of their number in one namespace.',
  );
  const slots = new DerivedPoolSlots(maxDerived);
  const remove = (pool: string, nad_namespace: string, families = Object.values(FAMILY_LABELS)) => {
    for (const family of families) {
      capacity.remove({ pool, family });
      available.remove({ pool, nad_namespace, family });
      for (const { state } of COUNTS) addresses.remove({ pool, nad_namespace, family, state });
    }
  };
  const report = (observed: AddressPool, use: FamilyCounts) => {
    const pool = observed.metadata.name;
    const nad_namespace = namespaceOf(observed);
    const family = FAMILY_LABELS[use.family];
    if (capacityOf(use) === 0n) {
      remove(pool, nad_namespace, [family]);
      return;
    }
    capacity.set({ pool, family }, toSafeNumber(capacityOf(use)));
    const count = observed.spec.stickyMAC === undefined ? use.free : use.free + use.cooling;
    available.set({ pool, nad_namespace, family }, toSafeNumber(count));
    for (const { state, field } of COUNTS)
      addresses.set({ pool, nad_namespace, family, state }, toSafeNumber(use[field]));
  };
  /** Returns whether the pool has series now. */
  const add = (given: Observation): boolean => {
    const out = isAdminPool(given.pool) ? undefined : slots.take(given);
    if (out !== undefined) remove(out.pool.metadata.name, namespaceOf(out.pool));
    if (out === given) return false;
    for (const use of given.uses) report(given.pool, use);
    return true;
  };
  const forget = (pool: string) => {
    remove(pool, slots.namespaceOf(pool));
    slots.release(pool).some(add);
    leftOut.set(slots.leftOut);
  };
  return {
    observed: (pool: AddressPool, uses: readonly FamilyCounts[]) => {
      const { name } = pool.metadata;
      // another pool of this name may have been deleted since the last sync
      if (slots.namespaceOf(name) !== namespaceOf(pool)) forget(name);
      add({ pool, uses });
      leftOut.set(slots.leftOut);
    },
    forget,
    clear: () => {
      slots.clear();
      addresses.reset();
      capacity.reset();
      available.reset();
      leftOut.remove();
    },
  };
}

interface Observation {
  readonly pool: AddressPool;
  readonly uses: readonly FamilyCounts[];
}

/** Divides a limited number of slots among pools that are derived from NADs, and among their namespaces. Older pools come first, for each leader. */
class DerivedPoolSlots {
  readonly #max: number;
  readonly #taken = new Map<string, Observation>();
  readonly #leftOut = new Map<string, Observation>();

  constructor(max: number) {
    this.#max = max;
  }

  /** The number of pools that asked for a slot and have none. */
  get leftOut(): number {
    return this.#leftOut.size;
  }

  /** The namespace of a pool that has a slot. */
  namespaceOf(pool: string): string {
    const found = this.#taken.get(pool)?.pool;
    return found === undefined ? '' : namespaceOf(found);
  }

  /** Returns the pool that has no slot because of this one: itself, or the one that had its slot. */
  take(given: Observation): Observation | undefined {
    const { name } = given.pool.metadata;
    const isNew = !this.#taken.has(name);
    this.#taken.set(name, given);
    this.#leftOut.delete(name);
    const out = isNew ? this.#excess(namespaceOf(given.pool)) : undefined;
    if (out === undefined) return undefined;
    this.#taken.delete(out.pool.metadata.name);
    this.#leftOut.set(out.pool.metadata.name, out);
    return out;
  }

  #excess(namespace: string): Observation | undefined {
    const all = [...this.#taken.values()];
    const ofNamespace = all.filter(({ pool }) => namespaceOf(pool) === namespace);
    if (ofNamespace.length > MAX_DERIVED_POOLS_OF_NAMESPACE) return ofNamespace.reduce(youngerOf);
    return all.length > this.#max ? all.reduce(youngerOf) : undefined;
  }

  /** Returns the pools that may get the slot, if there is one: the oldest first. Their namespaces may have too many. */
  release(pool: string): Observation[] {
    this.#leftOut.delete(pool);
    return this.#taken.delete(pool) ? [...this.#leftOut.values()].sort((a, b) => byAge(a.pool, b.pool)) : [];
  }

  clear(): void {
    this.#taken.clear();
    this.#leftOut.clear();
  }
}

/** Empty for a pool of an administrator, as in the label of the metrics. */
function namespaceOf(pool: AddressPool): string {
  return nadNamespaceOf(pool) ?? '';
}

function youngerOf(a: Observation, b: Observation): Observation {
  return byAge(a.pool, b.pool) > 0 ? a : b;
}
