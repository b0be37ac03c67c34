import type { Metrics } from '../process/metrics.js';

/** Metrics of the process as a whole. */
export interface IpamMetrics {
  setLeading(leader: boolean): void;
  /** Sets the number of addresses that launchers have without a lease. */
  setUnleased(addresses: number): void;
}

export function createIpamMetrics(metrics: Pick<Metrics, 'gauge'>): IpamMetrics {
  const leader = metrics.gauge('ipam_leads', '1 if this process is the leader, else 0.');
  const unleased = metrics.gauge(
    'ipam_unleased_addresses',
    'Addresses of pools that running launchers report and that are not leased to them.',
  );
  return { setLeading: (leads) => leader.set(leads ? 1 : 0), setUnleased: (addresses) => unleased.set(addresses) };
}
