import type { Clock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import type { AdmissionMetrics, ReviewResult } from './metrics.js';
import { type AdmissionRequest, type AdmissionResponse, readReview, writeReview } from './review.js';

export interface ReviewerOptions {
  /** The reviewed object, for messages: `the pod`. */
  subject: string;
  /** The Deployment whose log has the details of an internal error: `holdfast-webhook`. */
  component: string;
  /** Decides about a request. An error that it throws is an internal error. */
  decide: (request: AdmissionRequest) => AdmissionResponse | Promise<AdmissionResponse>;
  /** Returns the answer after an internal error; `reason` describes it. Default: a denial. */
  onFault?: (reason: string) => AdmissionResponse;
  log: Logger;
  metrics: Pick<AdmissionMetrics, 'reviewed'>;
  clock: Clock;
}

/** Answers admission reviews: reads them, calls `decide`, and counts the results. */
export class Reviewer {
  readonly #options: ReviewerOptions;

  constructor(options: ReviewerOptions) {
    this.#options = options;
  }

  /**
   * @param body parsed JSON
   * @returns the body of the response
   * @throws {ReviewError} if the body is not a review that can be answered
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
    const { subject, component, log, onFault = deny } = this.#options;
    log.error({ err: error, namespace, uid }, `review failed: ${messageOf(error)}`);
    return onFault(
      `Holdfast could not review ${subject} because of an internal error (${messageOf(error)}): see the log of ${component}`,
    );
  }
}

/** Denies, so that an internal error never lets an invalid object pass. */
function deny(reason: string): AdmissionResponse {
  return { allowed: false, reason, code: 500 };
}

/** Returns a label value: only known operations, because the value comes from outside. */
function operationLabel({ operation }: AdmissionRequest): string {
  return ['CREATE', 'UPDATE', 'DELETE'].includes(operation) ? operation : 'other';
}

function resultOf(answer: AdmissionResponse): ReviewResult {
  if (!answer.allowed) return answer.code === 500 ? 'failed' : 'denied';
  return answer.patch?.length ? 'patched' : 'allowed';
}
