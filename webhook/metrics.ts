import { type AdmissionMetrics, createAdmissionMetrics } from '../process/admission/metrics.js';
import type { Metrics } from '../process/metrics.js';
import type { Doubt } from '../process/claims/cluster-view.js';

/** What the webhook measures. */
export interface WebhookMetrics extends AdmissionMetrics {
  readLive: (kind: Doubt['kind'], result: 'found' | 'absent' | 'failed') => void;
}

export function createWebhookMetrics(metrics: Metrics): WebhookMetrics {
  const liveReads = metrics.counter(
    'webhook_live_reads_total',
    'Objects that were not as expected in a cache and were read live.',
    ['kind', 'result'],
  );
  return {
    ...createAdmissionMetrics(metrics, { prefix: 'webhook', subjects: 'pods' }),
    readLive: (kind, result) => liveReads.inc({ kind, result }),
  };
}
