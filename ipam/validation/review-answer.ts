import type { AdmissionMetrics } from '../../admission/metrics.js';
import { type AdmissionResponse, MalformedObjectError, requireRecord } from '../../admission/review.js';
import type { AddressPool } from '../../api/address-pool.js';
import { isRecord } from '../../api/json.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { Clock } from '../../kube/clock.js';
import type { Logger } from '../../kube/log.js';
import type { ValidationResult, ValidationView } from './review.js';

/**
 * @param path the path of the pool in the review, for messages
 * @throws {MalformedObjectError}
 */
export function readPoolObject(value: unknown, path: string): AddressPool {
  const { metadata, object: pool } = readObject(value, path);
  requireRecord(pool.spec, `${path}.spec`);
  return { ...pool, metadata } as unknown as AddressPool;
}

/**
 * @param path the path of the NAD in the review, for messages
 * @throws {MalformedObjectError}
 */
export function readNadObject(value: unknown, path: string, namespace: string): NetworkAttachmentDefinition {
  const { metadata, object: nad } = readObject(value, path);
  const spec = isRecord(nad.spec) ? { spec: nad.spec } : {};
  return { metadata: { ...metadata, namespace }, ...spec };
}

function readObject(value: unknown, path: string) {
  const object = requireRecord(value, path);
  const metadata = requireRecord(object.metadata, `${path}.metadata`);
  const name = metadata.name ?? '';
  if (typeof name !== 'string') throw new MalformedObjectError(`${path}.metadata.name`, name, 'a string');
  return { object, metadata: { ...metadata, name } };
}

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
interface AnsweredReview {
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
