import type { Metrics } from '../process/metrics.js';
import type { CertificateMetrics } from '../tls/certificate-source.js';

export type AdmissionMetrics = ReturnType<typeof createAdmissionMetrics>;

/** `allowed` without a change, `patched`, `denied`, or `failed`: an internal error, or no answer from the API server. */
export type ReviewResult = 'allowed' | 'patched' | 'denied' | 'failed';

interface AdmissionMetricsOptions {
  /** The prefix of the names, because several servers may run in one process. */
  prefix: 'webhook' | 'ipam';
  /** The reviewed objects, in the plural. */
  subjects: string;
}

const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

/** Creates the metrics of a server for admission reviews. */
export function createAdmissionMetrics(metrics: Metrics, { prefix, subjects }: AdmissionMetricsOptions) {
  const reviews = metrics.histogram(
    `${prefix}_review_duration_seconds`,
    `Duration of admission reviews of ${subjects}, by operation and result.`,
    { labels: ['operation', 'result'], buckets: SECONDS },
  );
  // the first failure is seen only if the count was 0 before
  for (const operation of ['CREATE', 'UPDATE', 'DELETE']) reviews.zero({ operation, result: 'failed' });
  const denials = metrics.counter(`${prefix}_denials_total`, `Denied ${subjects}, by the check that denied them.`, [
    'check',
  ]);
  const rejects = metrics.counter(
    `${prefix}_rejected_requests_total`,
    'Requests that were not valid admission reviews, by HTTP status.',
    ['status'],
  );
  return {
    /** One review. */
    reviewed: (operation: string, result: ReviewResult, seconds: number) =>
      reviews.observe({ operation, result }, seconds),
    denied: (check: string) => denials.inc({ check }),
    /** A request that was not a review, with its HTTP status. */
    rejected: (status: number) => rejects.inc({ status }),
    certificateExpires: ((certificate, at) =>
      metrics.setExpiration(prefix, certificate, at)) satisfies CertificateMetrics['certificateExpires'],
  };
}
