import type { Metrics } from '../process/metrics.js';
import type { CertificateMetrics } from '../tls/certificate-source.js';

export interface MonitoringMetrics extends CertificateMetrics {
  /** A request for metrics, with its HTTP status. */
  answered: (status: number) => void;
}

export function createMonitoringMetrics(metrics: Metrics): MonitoringMetrics {
  const requests = metrics.counter('metrics_requests_total', 'Requests for metrics over HTTPS, by HTTP status.', [
    'status',
  ]);
  return {
    answered: (status) => requests.inc({ status }),
    certificateExpires: (certificate, at) => metrics.setExpiration('metrics', certificate, at),
  };
}
