import type { Metrics } from '../process/metrics.js';

export type CapacityMetrics = ReturnType<typeof createCapacityMetrics>;

/** Creates the metrics of the addresses that nodes show. */
export function createCapacityMetrics(metrics: Pick<Metrics, 'gauge' | 'counter'>) {
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
    /** Removes all values of pools, which only the leader reports. */
    clear: () => {
      free.reset();
      waiting.reset();
      leftOut.remove();
    },
    /** Free addresses of a pool that no bound pod waits for, and pods that no node has room for. */
    observed: (pool: string, counts: { free: number; waiting: number }) => {
      free.set({ pool }, counts.free);
      waiting.set({ pool }, counts.waiting);
    },
    forget: (pool: string) => {
      free.remove({ pool });
      waiting.remove({ pool });
    },
    /** The number of pools with publishCapacity beyond the limit. */
    leftOut: (pools: number) => leftOut.set(pools),
    /** A write to a node ended. */
    written: (result: 'done' | 'failed') => writes.inc({ result }),
  };
}
