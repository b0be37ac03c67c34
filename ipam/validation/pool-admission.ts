import type { AdmissionRequest, AdmissionResponse } from '../../admission/review.js';
import { Reviewer } from '../../admission/reviewer.js';
import { MalformedObjectError, readPoolObject } from './reviewed-objects.js';
import { reviewPool } from './pool-review.js';
import { type ValidationAdmissionOptions, denyResource, answerReview } from './review-answer.js';
import type { ValidationResult } from './validation-result.js';

const POOL_RESOURCE = 'ipam.holdfast.dev/v1alpha1/addresspools';

/** Answers reviews of pools. It has no side effects, so a dry run is reviewed like any other request. */
export class PoolAdmission {
  readonly #options: ValidationAdmissionOptions;
  readonly #reviewer: Reviewer;

  constructor(options: ValidationAdmissionOptions) {
    this.#options = options;
    this.#reviewer = new Reviewer({ ...options, subject: 'the pool', decide: (request) => this.#decide(request) });
  }

  /**
   * @param body parsed JSON
   * @returns the body of the answer; what cannot be reviewed is refused
   * @throws {ReviewError} if there is nothing to answer
   */
  answer(body: unknown): Promise<string> {
    return this.#reviewer.answer(body);
  }

  async #decide(request: AdmissionRequest): Promise<AdmissionResponse> {
    if (request.resource !== POOL_RESOURCE) return denyResource(request.resource, POOL_RESOURCE);
    const missing = await this.#options.waitForSync();
    if (missing !== undefined) {
      return {
        allowed: false,
        reason: `Holdfast's IPAM is not ready to review pools: ${missing}. Try again`,
        code: 500,
      };
    }
    return rejectMalformed(() => this.#judge(request));
  }

  #judge({ operation, object, oldObject }: AdmissionRequest): AdmissionResponse {
    const { view } = this.#options;
    const pool = () => readPoolObject(object, 'request.object');
    const oldPool = () => readPoolObject(oldObject, 'request.oldObject');
    switch (operation) {
      case 'CREATE': {
        const review = { operation, pool: pool() } as const;
        return this.#report(operation, review.pool.metadata.name, reviewPool(review, view));
      }
      case 'UPDATE': {
        const review = { operation, pool: pool(), oldPool: oldPool() } as const;
        return this.#report(operation, review.pool.metadata.name, reviewPool(review, view));
      }
      case 'DELETE': {
        const review = { operation, oldPool: oldPool() } as const;
        return this.#report(operation, review.oldPool.metadata.name, reviewPool(review, view));
      }
      default:
        return { allowed: true };
    }
  }

  #report(operation: string, name: string, verdict: ValidationResult): AdmissionResponse {
    return answerReview({ operation, subject: `AddressPool ${name}`, result: verdict }, this.#options);
  }
}

function rejectMalformed(decide: () => AdmissionResponse): AdmissionResponse {
  try {
    return decide();
  } catch (error) {
    if (!(error instanceof MalformedObjectError)) throw error;
    return { allowed: false, reason: error.message, code: 400 };
  }
}
