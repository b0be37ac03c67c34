import { COUNTS } from '../../addressing/address-states.js';
import type { Family } from '../../addressing/address/address.js';
import { toSafeNumber } from '../../addressing/address/ranges.js';
import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
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
  const remove = (pool: string, family: string) => {
    capacity.remove({ pool, family });
    const nad_namespace = slots.namespaceOf(pool) ?? '';
    available.remove({ pool, nad_namespace, family });
    for (const { state } of COUNTS) addresses.remove({ pool, nad_namespace, family, state });
  };
  const report = ({ metadata: { name: pool }, spec: { stickyMAC } }: AddressPool, use: FamilyCounts) => {
    const nad_namespace = slots.namespaceOf(pool) ?? '';
    const family = FAMILY_LABELS[use.family];
    if (capacityOf(use) === 0n) {
      remove(pool, family);
      return;
    }
    capacity.set({ pool, family }, toSafeNumber(capacityOf(use)));
    const count = stickyMAC === undefined ? use.free : use.free + use.cooling;
    available.set({ pool, nad_namespace, family }, toSafeNumber(count));
    for (const { state, field } of COUNTS)
      addresses.set({ pool, nad_namespace, family, state }, toSafeNumber(use[field]));
  };
  const forget = (pool: string) => {
    for (const family of Object.values(FAMILY_LABELS)) remove(pool, family);
    slots.release(pool);
    leftOut.set(slots.leftOut);
  };
  return {
    observed: (pool: AddressPool, uses: readonly FamilyCounts[]) => {
      const { name } = pool.metadata;
      const namespace = nadNamespaceOf(pool);
      if (namespace === undefined || slots.take(name, namespace)) for (const use of uses) report(pool, use);
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

/** Divides a limited number of slots among pools that are derived from NADs, and among their namespaces. A pool keeps its slot until it is gone. */
class DerivedPoolSlots {
  readonly #max: number;
  /** Namespaces by pool. */
  readonly #taken = new Map<string, string>();
  readonly #leftOut = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  /** The number of pools that asked for a slot and have none. */
  get leftOut(): number {
    return this.#leftOut.size;
  }

  /** The namespace of a pool that has a slot. */
  namespaceOf(pool: string): string | undefined {
    return this.#taken.get(pool);
  }

  /** Returns whether the pool has a slot now. */
  take(pool: string, namespace: string): boolean {
    if (this.#taken.has(pool)) return true;
    const count = [...this.#taken.values()].filter((each) => each === namespace).length;
    if (this.#taken.size >= this.#max || count >= MAX_DERIVED_POOLS_OF_NAMESPACE) {
      this.#leftOut.add(pool);
      return false;
    }
    this.#leftOut.delete(pool);
    this.#taken.set(pool, namespace);
    return true;
  }

  release(pool: string): void {
    this.#leftOut.delete(pool);
    this.#taken.delete(pool);
  }

  clear(): void {
    this.#taken.clear();
    this.#leftOut.clear();
  }
}
