import type { Metrics } from '../process/metrics.js';

/** Metrics of the process as a whole. */
export interface IpamMetrics {
  setLeading(leader: boolean): void;
}

export function createIpamMetrics(metrics: Pick<Metrics, 'gauge'>): IpamMetrics {
  const leader = metrics.gauge('ipam_leads', '1 if this process is the leader, else 0.');
  return { setLeading: (leads) => leader.set(leads ? 1 : 0) };
}
