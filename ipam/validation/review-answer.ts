import type { Clock } from '../../kube/clock.js';
import type { Logger } from '../../kube/log.js';
import type { AdmissionMetrics } from '../../admission/metrics.js';
import type { AdmissionResponse } from '../../admission/review.js';
import type { ReviewResult } from './review-result.js';
import type { ValidationView } from './view.js';

/** What answering takes. */
export interface ValidationAdmissionOptions {
  view: ValidationView;
  /** Waits, not for long, until the view is filled. @returns what is missing then */
  filled: () => Promise<string | undefined>;
  log: Logger;
  metrics: Pick<AdmissionMetrics, 'reviewed' | 'denied'>;
  clock: Clock;
}

/** A verdict, and on what. */
export interface AnsweredReview {
  operation: string;
  /** Kind and name. */
  subject: string;
  verdict: ReviewResult;
}

/** Says a verdict with the same words in the log and in the answer. */
export function answerReview(
  { operation, subject, verdict }: AnsweredReview,
  { log, metrics }: ValidationAdmissionOptions,
): AdmissionResponse {
  const { refusals, warnings } = verdict;
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

/** Of a review that was not meant for us. */
export function denyResource(resource: string, wanted: string): AdmissionResponse {
  return {
    allowed: false,
    reason: `${resource} is sent to a webhook for ${wanted}: correct its configuration`,
    code: 400,
  };
}
