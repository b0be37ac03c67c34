import type { Metrics } from '../process/metrics.js';
import type { Doubt } from './cluster-view.js';

/** What the webhook measures. */
export interface WebhookMetrics {
  /** One review: `allowed` as it is, `patched`, `denied`, or `failed` by a fault of ours. */
  reviewed: (operation: string, result: 'allowed' | 'patched' | 'denied' | 'failed', seconds: number) => void;
  denied: (check: string) => void;
  readLive: (kind: Doubt['kind'], result: 'found' | 'absent' | 'failed') => void;
  /** A request that was no review: the HTTP status it got. */
  rejected: (status: number) => void;
  /** When a certificate in use ends, in ms since the epoch. */
  certificateEnds: (which: 'authority' | 'serving', at: number) => void;
}

const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

export function createWebhookMetrics(metrics: Metrics): WebhookMetrics {
  const reviews = metrics.histogram('webhook_review_seconds', 'Admission reviews of pods, by how they ended.', {
    labels: ['operation', 'result'],
    buckets: SECONDS,
  });
  const denials = metrics.counter('webhook_denials_total', 'Pods that were refused, by the check that refused them.', [
    'check',
  ]);
  const liveReads = metrics.counter(
    'webhook_live_reads_total',
    'Objects that were not as expected in a cache and were read live.',
    ['kind', 'result'],
  );
  const rejects = metrics.counter('webhook_rejected_requests_total', 'Requests that were no admission review.', [
    'status',
  ]);
  const ends = metrics.gauge(
    'webhook_certificate_end_seconds',
    'When a certificate ends, in seconds since the epoch.',
    ['certificate'],
  );
  return {
    reviewed: (operation, result, seconds) => reviews.observe({ operation, result }, seconds),
    denied: (check) => denials.inc({ check }),
    readLive: (kind, result) => liveReads.inc({ kind, result }),
    rejected: (status) => rejects.inc({ status }),
    certificateEnds: (certificate, at) => ends.set({ certificate }, at / 1000),
  };
}
