import {
  type AdmissionRequest,
  type AdmissionResponse,
  MalformedObjectError,
  Reviewer,
} from '../../admission/review.js';
import { type ValidationAdmissionOptions, answerReview, denyResource, readPoolObject } from './review-answer.js';
import { type PoolReview, reviewPool } from './pool-review.js';

const POOL_RESOURCE = 'ipam.holdfast.dev/v1alpha1/addresspools';

/**
 * Creates the reviewer of pools. It has no side effects, so a dry run is reviewed like any other request. What cannot be reviewed is refused.
 */
export function createPoolReviewer(options: ValidationAdmissionOptions): Reviewer {
  return new Reviewer({
    ...options,
    subject: 'the pool',
    component: 'holdfast-ipam',
    decide: (request) => decide(request, options),
  });
}

async function decide(request: AdmissionRequest, options: ValidationAdmissionOptions): Promise<AdmissionResponse> {
  if (request.resource !== POOL_RESOURCE) return denyResource(request.resource, POOL_RESOURCE);
  const missing = await options.waitForSync();
  if (missing !== undefined) {
    return { allowed: false, reason: `Holdfast's IPAM is not ready to review pools: ${missing}. Try again`, code: 500 };
  }
  try {
    return review(request, options);
  } catch (error) {
    if (!(error instanceof MalformedObjectError)) throw error;
    return { allowed: false, reason: error.message, code: 400 };
  }
}

function review({ operation, object, oldObject }: AdmissionRequest, options: ValidationAdmissionOptions) {
  const pool = () => readPoolObject(object, 'request.object');
  const oldPool = () => readPoolObject(oldObject, 'request.oldObject');
  switch (operation) {
    case 'CREATE':
      return answer({ operation, pool: pool() }, options);
    case 'UPDATE':
      return answer({ operation, pool: pool(), oldPool: oldPool() }, options);
    case 'DELETE':
      return answer({ operation, oldPool: oldPool() }, options);
    default:
      return { allowed: true } as const;
  }
}

function answer(review: PoolReview, options: ValidationAdmissionOptions): AdmissionResponse {
  const { name } = (review.operation === 'DELETE' ? review.oldPool : review.pool).metadata;
  const result = reviewPool(review, options.view);
  return answerReview({ operation: review.operation, subject: `AddressPool ${name}`, result }, options);
}
