import type { Metrics } from '../process/metrics.js';

/** What a server of admission reviews measures. */
export interface AdmissionMetrics {
  /** One review: `allowed` as it is, `patched`, `denied`, or `failed` by a fault of ours. */
  reviewed: (operation: string, result: ReviewResult, seconds: number) => void;
  denied: (check: string) => void;
  /** A request that was no review: the HTTP status it got. */
  rejected: (status: number) => void;
  /** When a certificate in use ends, in ms since the epoch. */
  certificateEnds: (which: 'authority' | 'serving', at: number) => void;
}

export type ReviewResult = 'allowed' | 'patched' | 'denied' | 'failed';

export interface AdmissionMetricsOptions {
  /** How the names begin: several servers may run in one process. */
  prefix: 'webhook' | 'ipam';
  /** What is reviewed, in the plural. */
  subjects: string;
}

const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

export function createAdmissionMetrics(
  metrics: Metrics,
  { prefix, subjects }: AdmissionMetricsOptions,
): AdmissionMetrics {
  const reviews = metrics.histogram(
    `${prefix}_review_seconds`,
    `Admission reviews of ${subjects}, by how they ended.`,
    { labels: ['operation', 'result'], buckets: SECONDS },
  );
  const denials = metrics.counter(
    `${prefix}_denials_total`,
    `Refusals of ${subjects}, by the check that refused them.`,
    ['check'],
  );
  const rejects = metrics.counter(`${prefix}_rejected_requests_total`, 'Requests that were no admission review.', [
    'status',
  ]);
  const ends = metrics.gauge(
    `${prefix}_certificate_end_seconds`,
    'When a certificate ends, in seconds since the epoch.',
    ['certificate'],
  );
  return {
    reviewed: (operation, result, seconds) => reviews.observe({ operation, result }, seconds),
    denied: (check) => denials.inc({ check }),
    rejected: (status) => rejects.inc({ status }),
    certificateEnds: (certificate, at) => ends.set({ certificate }, at / 1000),
  };
}
