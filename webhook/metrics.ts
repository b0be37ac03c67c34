import { type AdmissionMetrics, createAdmissionMetrics } from '../admission/metrics.js';
import type { Metrics } from '../process/metrics.js';
import type { Recheck } from '../cluster/cluster-view.js';

/** The API server waits for 2 s. */
const CAPACITY_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2];

/** What the webhook measures. */
export interface WebhookMetrics extends AdmissionMetrics {
  readLive: (kind: Recheck['kind'], result: 'found' | 'absent' | 'failed') => void;
  /** One review of a pod that is to ask for addresses. */
  capacityReviewed: AdmissionMetrics['reviewed'];
}

export function createWebhookMetrics(metrics: Metrics): WebhookMetrics {
  const liveReads = metrics.counter(
    'webhook_live_reads_total',
    'Objects that were not as expected in a cache and were read live.',
    ['kind', 'result'],
  );
  const capacityReviews = metrics.histogram(
    'webhook_capacity_review_seconds',
    'Admission reviews of pods that are to ask for addresses, by how they ended.',
    { labels: ['operation', 'result'], buckets: CAPACITY_SECONDS },
  );
  return {
    ...createAdmissionMetrics(metrics, { prefix: 'webhook', subjects: 'pods' }),
    readLive: (kind, result) => liveReads.inc({ kind, result }),
    capacityReviewed: (operation, result, seconds) => capacityReviews.observe({ operation, result }, seconds),
  };
}
