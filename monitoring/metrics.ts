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
  const expirations = metrics.gauge(
    'metrics_certificate_expiration_timestamp_seconds',
    'When the certificate of the metrics expires, in seconds since the epoch.',
  );
  return { answered: (status) => requests.inc({ status }), certificateExpires: (_, at) => expirations.set(at / 1000) };
}
