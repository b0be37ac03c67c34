import { type AdmissionRequest, type AdmissionResponse, Reviewer } from '../../admission/review.js';
import { runInSlices } from '../../kube/run-in-slices.js';
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
  const review = readPoolReview(request);
  if (review === undefined) return { allowed: true };
  const { name } = (review.operation === 'DELETE' ? review.oldPool : review.pool).metadata;
  const result = await runInSlices(reviewPool(review, options.view), options.clock);
  return answerReview({ operation: review.operation, subject: `AddressPool ${name}`, result }, options);
}

function readPoolReview({ operation, object, oldObject }: AdmissionRequest): PoolReview | undefined {
  const pool = () => readPoolObject(object, 'request.object');
  const oldPool = () => readPoolObject(oldObject, 'request.oldObject');
  if (operation === 'CREATE') return { operation, pool: pool() };
  if (operation === 'UPDATE') return { operation, pool: pool(), oldPool: oldPool() };
  return operation === 'DELETE' ? { operation, oldPool: oldPool() } : undefined;
}
