import { type AdmissionMetrics, createAdmissionMetrics } from '../../admission/metrics.js';
import type { Metrics } from '../../process/metrics.js';

export function createValidationMetrics(metrics: Metrics): AdmissionMetrics {
  return createAdmissionMetrics(metrics, { prefix: 'ipam', subjects: 'pools and networks' });
}
