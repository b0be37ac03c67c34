import type { Metrics } from '../process/metrics.js';

/** What is measured of free addresses that nodes show. */
export interface CapacityMetrics {
  setLeading(leader: boolean): void;
  /** Of a pool: addresses that nobody has or waits for, and pods for which no node has room. */
  observed(pool: string, counts: { free: number; waiting: number }): void;
  /** No such pool is published any more. */
  forget(pool: string): void;
  /** Pools that publish their capacity and are beyond the limit. */
  leftOut(pools: number): void;
  /** One write to a node. */
  written(result: 'done' | 'failed'): void;
}

export function createCapacityMetrics(metrics: Pick<Metrics, 'gauge' | 'counter'>): CapacityMetrics {
  const leader = metrics.gauge('capacity_leads', '1 where this process is the one that works.');
  const free = metrics.gauge('capacity_free', 'Addresses of a pool that nodes show, all together at most.', ['pool']);
  const waiting = metrics.gauge('capacity_waiting_pods', 'Pods that no node had room for.', ['pool']);
  const leftOut = metrics.gauge('capacity_pools_left_out', 'Pools that publish their capacity beyond the limit.');
  const writes = metrics.counter('capacity_writes_total', 'Writes to nodes, by how they ended.', ['result']);
  return {
    setLeading: (leads) => leader.set(leads ? 1 : 0),
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
