import type { Metrics } from '../process/metrics.js';

/** What is measured of the process as a whole. */
export interface IpamMetrics {
  setLeading(leader: boolean): void;
}

export function createIpamMetrics(metrics: Pick<Metrics, 'gauge'>): IpamMetrics {
  const leader = metrics.gauge('ipam_leads', '1 where this process is the one that works.');
  return { setLeading: (leads) => leader.set(leads ? 1 : 0) };
}
