import type { Clock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import type { AdmissionMetrics, ReviewResult } from './metrics.js';
import { type AdmissionRequest, type AdmissionResponse, readReview, writeReview } from './review.js';

export interface ReviewerOptions {
  /** What is reviewed, for messages: `the pod`. */
  subject: string;
  /** May throw: that is a fault of ours. */
  decide: (request: AdmissionRequest) => AdmissionResponse | Promise<AdmissionResponse>;
  /** What is answered after a fault of ours; `reason` says what happened. Default: a refusal. */
  onFault?: (reason: string) => AdmissionResponse;
  log: Logger;
  metrics: Pick<AdmissionMetrics, 'reviewed'>;
  clock: Clock;
}

/** Answers admission reviews: reads them, has them decided, and counts them. */
export class Reviewer {
  readonly #options: ReviewerOptions;

  constructor(options: ReviewerOptions) {
    this.#options = options;
  }

  /**
   * @param body parsed JSON
   * @returns the body of the answer
   * @throws {ReviewError} where there is nothing that could be answered
   */
  async answer(body: unknown): Promise<string> {
    const request = readReview(body);
    const { decide, metrics, clock } = this.#options;
    const began = clock.now();
    let answer: AdmissionResponse;
    let result: ReviewResult;
    try {
      answer = await decide(request);
      result = resultOf(answer);
    } catch (error) {
      answer = this.#fail(request, error);
      result = 'failed';
    }
    metrics.reviewed(operationLabel(request), result, (clock.now() - began) / 1000);
    return writeReview(request.uid, answer);
  }

  #fail({ namespace, uid }: AdmissionRequest, error: unknown): AdmissionResponse {
    const { subject, log, onFault = deny } = this.#options;
    log.error({ err: error, namespace, uid }, `review failed: ${messageOf(error)}`);
    return onFault(`Holdfast failed to review ${subject} (${messageOf(error)}): see the log of its webhook`);
  }
}

/** So that a fault cannot pass for an object that is right. */
function deny(reason: string): AdmissionResponse {
  return { allowed: false, reason, code: 500 };
}

/** Labels come from outside: only known ones become label values. */
function operationLabel({ operation }: AdmissionRequest): string {
  return ['CREATE', 'UPDATE', 'DELETE'].includes(operation) ? operation : 'other';
}

function resultOf(answer: AdmissionResponse): ReviewResult {
  if (!answer.allowed) return answer.code === 500 ? 'failed' : 'denied';
  return answer.patch?.length ? 'patched' : 'allowed';
}
