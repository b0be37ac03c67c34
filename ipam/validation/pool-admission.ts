import type { AdmissionRequest, Answer } from '../../admission/review.js';
import { Reviewer } from '../../admission/reviewer.js';
import { MalformedObjectError, readPoolObject } from './objects.js';
import { reviewPool } from './pools.js';
import { type ValidationAdmissionOptions, refuseResource, report } from './report.js';
import type { Verdict } from './verdict.js';

const POOLS = 'ipam.holdfast.dev/v1alpha1/addresspools';

/** Answers reviews of pools. Has no side effects, so that a dry run is like any other. */
export class PoolAdmission {
  readonly #options: ValidationAdmissionOptions;
  readonly #reviewer: Reviewer;

  constructor(options: ValidationAdmissionOptions) {
    this.#options = options;
    this.#reviewer = new Reviewer({ ...options, subject: 'the pool', decide: (request) => this.#decide(request) });
  }

  /**
   * @param body parsed JSON
   * @returns the body of the answer; what cannot be judged is refused
   * @throws {ReviewError} where there is nothing that could be answered
   */
  answer(body: unknown): Promise<string> {
    return this.#reviewer.answer(body);
  }

  async #decide(request: AdmissionRequest): Promise<Answer> {
    if (request.resource !== POOLS) return refuseResource(request.resource, POOLS);
    const missing = await this.#options.filled();
    if (missing !== undefined) {
      return {
        allowed: false,
        reason: `Holdfast's IPAM is not ready to review pools: ${missing}. Try again`,
        code: 500,
      };
    }
    return orMalformed(() => this.#judge(request));
  }

  #judge({ operation, object, oldObject }: AdmissionRequest): Answer {
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

  #report(operation: string, name: string, verdict: Verdict): Answer {
    return report({ operation, subject: `AddressPool ${name}`, verdict }, this.#options);
  }
}

function orMalformed(decide: () => Answer): Answer {
  try {
    return decide();
  } catch (error) {
    if (!(error instanceof MalformedObjectError)) throw error;
    return { allowed: false, reason: error.message, code: 400 };
  }
}
