import type { WebhookMetrics } from '../metrics.js';

const nothing = () => undefined;

export const silentWebhookMetrics: WebhookMetrics = {
  reviewed: nothing,
  denied: nothing,
  readLive: nothing,
  capacityReviewed: nothing,
  rejected: nothing,
  certificateExpires: nothing,
};
