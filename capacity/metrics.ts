import type { Metrics } from '../process/metrics.js';

/** The metrics of the addresses that nodes show. */
export interface CapacityMetrics {
  /** Removes all values of pools, which only the leader reports. */
  clear(): void;
  /** Free addresses of a pool that no bound pod waits for, and pods that no node has room for. */
  observed(pool: string, counts: { free: number; waiting: number }): void;
  /** The pool is no longer published. */
  forget(pool: string): void;
  /** The number of pools with publishCapacity beyond the limit. */
  leftOut(pools: number): void;
  /** A write to a node ended. */
  written(result: 'done' | 'failed'): void;
}

export function createCapacityMetrics(metrics: Pick<Metrics, 'gauge' | 'counter'>): CapacityMetrics {
  const free = metrics.gauge(
    'capacity_free_addresses',
    'Free addresses of a pool minus those that bound pods wait for. The sum over all nodes never exceeds it.',
    ['pool'],
  );
  const waiting = metrics.gauge('capacity_waiting_pods', 'Unschedulable pods that wait for addresses of the pool.', [
    'pool',
  ]);
  const leftOut = metrics.gauge(
    'capacity_pools_left_out',
    'Pools with publishCapacity that nodes do not show because of --max-published-pools.',
  );
  const writes = metrics.counter('capacity_writes_total', 'Writes to nodes, by result.', ['result']);
  return {
    clear: () => {
      free.reset();
      waiting.reset();
      leftOut.remove();
    },
    observed: (pool, counts) => {
      free.set({ pool }, counts.free);
      waiting.set({ pool }, counts.waiting);
    },
    forget: (pool) => {
      free.remove({ pool });
      waiting.remove({ pool });
    },
    leftOut: (pools) => leftOut.set(pools),
    written: (result) => writes.inc({ result }),
  };
}
