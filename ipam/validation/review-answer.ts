import type { Clock } from '../../kube/clock.js';
import type { Logger } from '../../kube/log.js';
import type { AdmissionMetrics } from '../../admission/metrics.js';
import type { AdmissionResponse } from '../../admission/review.js';
import type { ValidationResult } from './validation-result.js';
import type { ValidationView } from './view.js';

/** The dependencies of the pool and NAD reviews. */
export interface ValidationAdmissionOptions {
  view: ValidationView;
  /**
   * Waits a limited time until the caches have synced.
   * @returns what is missing after that time
   */
  waitForSync: () => Promise<string | undefined>;
  log: Logger;
  metrics: Pick<AdmissionMetrics, 'reviewed' | 'denied'>;
  clock: Clock;
}

/** The result of a review, and what was reviewed. */
export interface AnsweredReview {
  operation: string;
  /** Kind and name. */
  subject: string;
  result: ValidationResult;
}

/** Logs the result of a review and answers with the same words. */
export function answerReview(
  { operation, subject, result }: AnsweredReview,
  { log, metrics }: ValidationAdmissionOptions,
): AdmissionResponse {
  const { refusals, warnings } = result;
  const [first] = refusals;
  if (first === undefined) {
    log.debug({ operation, subject, ...(warnings.length > 0 && { warnings }) }, 'allowed');
    return { allowed: true, warnings: [...warnings] };
  }
  const reason = `${subject}: ${refusals.map(({ message }) => message).join('; ')}`;
  for (const { check } of refusals) metrics.denied(check);
  log.info({ operation, subject, check: first.check }, `denied: ${reason}`);
  return { allowed: false, reason, code: first.check === 'spec' || first.check === 'delegation' ? 400 : 403 };
}

/** The answer to a review of another resource. */
export function denyResource(resource: string, wanted: string): AdmissionResponse {
  return {
    allowed: false,
    reason: `${resource} is sent to a webhook for ${wanted}: correct its configuration`,
    code: 400,
  };
}
