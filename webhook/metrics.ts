import { type AdmissionMetrics, createAdmissionMetrics } from '../admission/metrics.js';
import type { Metrics } from '../process/metrics.js';
import type { Recheck } from '../cluster/cluster-view.js';

/** The API server waits 2 s for the webhook. */
const CAPACITY_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2];

export type WebhookMetrics = ReturnType<typeof createWebhookMetrics>;

export function createWebhookMetrics(metrics: Metrics) {
  const liveReads = metrics.counter(
    'webhook_live_reads_total',
    'Live reads (rechecks) of objects before a negative answer, because the cache may be stale, by kind and result.',
    ['kind', 'result'],
  );
  const capacityReviews = metrics.histogram(
    'webhook_capacity_review_duration_seconds',
    'Duration of admission reviews of pods that need addresses, by operation and result.',
    { labels: ['operation', 'result'], buckets: CAPACITY_SECONDS },
  );
  return {
    ...createAdmissionMetrics(metrics, { prefix: 'webhook', subjects: 'pods' }),
    readLive: (kind: Recheck['kind'], result: 'found' | 'absent' | 'failed') => liveReads.inc({ kind, result }),
    /** Counts one review of a pod that needs addresses. */
    capacityReviewed: ((operation, result, seconds) =>
      capacityReviews.observe({ operation, result }, seconds)) satisfies AdmissionMetrics['reviewed'],
  };
}
