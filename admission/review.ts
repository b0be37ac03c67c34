import { describeValue, isRecord, truncate } from '../api/json.js';
import { MAX_MESSAGE_LENGTH } from '../api/limits.js';
import type { JsonPatchOperation } from '../kube/client.js';
import type { Clock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import type { AdmissionMetrics, ReviewResult } from './metrics.js';

/** The parts of an AdmissionReview, admission.k8s.io/v1, that are read. */
export interface AdmissionRequest {
  uid: string;
  operation: string;
  namespace: string;
  /** The user who sent the request to the API server. */
  username: string;
  /** `group/version/resource`, with `/subresource` if there is one. No group: the core group. */
  resource: string;
  object: unknown;
  oldObject: unknown;
}

/** The decision about a review. `code` of a denial is an HTTP status. */
export type AdmissionResponse =
  | { allowed: true; patch?: JsonPatchOperation[]; warnings?: string[] }
  | { allowed: false; reason: string; code: 400 | 403 | 500 };

/** The body is not an admission review, or has no UID to answer to. The message is sent to the client. */
export class ReviewError extends Error {
  override readonly name = 'ReviewError';
}

/** The reviewed object violates the schema of the API server. The message names the path, the value and what was expected. */
export class MalformedObjectError extends Error {
  override readonly name = 'MalformedObjectError';

  constructor(path: string, value: unknown, wanted: string) {
    super(`${path} is ${describeValue(value)}, not ${wanted}`);
  }
}

/** @throws {MalformedObjectError} */
export function requireRecord(value: unknown, path: string): Record<string, unknown> {
  if (isRecord(value)) return value;
  throw new MalformedObjectError(path, value, 'an object');
}

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';
/** The API server's limit. */
const MAX_WARNING_LENGTH = 256;
/** The API server drops warnings with control characters, because HTTP headers must not contain them. */
const CONTROL_CHARACTERS = /\p{Cc}+/gu;

/** @throws {ReviewError} */
export function readReview(body: unknown): AdmissionRequest {
  if (!isRecord(body)) throw new ReviewError(`the body is ${describeValue(body)}, not an ${KIND}`);
  if (body.kind !== KIND) throw new ReviewError(`kind is ${describeValue(body.kind)}, not "${KIND}"`);
  if (body.apiVersion !== API_VERSION)
    throw new ReviewError(`apiVersion is ${describeValue(body.apiVersion)}, not "${API_VERSION}"`);
  const { request } = body;
  if (!isRecord(request)) throw new ReviewError(`request is ${describeValue(request)}, not an object`);
  const { uid, object, oldObject } = request;
  if (typeof uid !== 'string' || uid === '')
    throw new ReviewError(`request.uid is ${describeValue(uid)}, not a string`);
  return {
    uid,
    operation: asText(request.operation),
    namespace: asText(request.namespace),
    username: isRecord(request.userInfo) ? asText(request.userInfo.username) : '',
    resource: resourceOf(request),
    object,
    oldObject,
  };
}

/** Writes the body of the response. It depends only on the arguments. */
export function writeReview(uid: string, answer: AdmissionResponse): string {
  return JSON.stringify({ apiVersion: API_VERSION, kind: KIND, response: { uid, ...responseOf(answer) } });
}

function responseOf(answer: AdmissionResponse): object {
  if (!answer.allowed) {
    const message = truncate(answer.reason, MAX_MESSAGE_LENGTH);
    return { allowed: false, status: { status: 'Failure', code: answer.code, message } };
  }
  const { patch = [], warnings = [] } = answer;
  return {
    allowed: true,
    ...(patch.length > 0 && { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }),
    ...(warnings.length > 0 && { warnings: warnings.map(sanitizeWarning) }),
  };
}

function sanitizeWarning(warning: string): string {
  return warning.replaceAll(CONTROL_CHARACTERS, ' ').slice(0, MAX_WARNING_LENGTH);
}

function resourceOf({ resource, subResource }: Record<string, unknown>): string {
  if (!isRecord(resource)) return describeValue(resource);
  const parts = [resource.group, resource.version, resource.resource, subResource].map(asText);
  return parts.filter((part) => part !== '').join('/');
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

interface ReviewerOptions {
  /** The reviewed object, for messages: `the pod`. */
  subject: string;
  /** The Deployment whose log has the details of an internal error: `holdfast-webhook`. */
  component: string;
  /** Decides about a request. An error that it throws is an internal error, unless the object is malformed. */
  decide: (request: AdmissionRequest) => AdmissionResponse | Promise<AdmissionResponse>;
  /** Returns the answer after any error; `reason` describes it. Default: a denial. */
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
   * @param arrivedAt when the request arrived: its duration includes the time in the queue
   * @returns the body of the response
   * @throws {ReviewError} if the body is not a review that can be answered
   */
  async answer(body: unknown, arrivedAt = this.#options.clock.now()): Promise<string> {
    const request = readReview(body);
    const { decide, metrics, clock } = this.#options;
    let answer: AdmissionResponse;
    let result: ReviewResult;
    try {
      answer = await decide(request);
      result = resultOf(answer);
    } catch (error) {
      answer = this.#fail(request, error);
      result = answer.allowed ? 'failed' : resultOf(answer);
    }
    metrics.reviewed(operationLabel(request), result, (clock.now() - arrivedAt) / 1000);
    return writeReview(request.uid, answer);
  }

  #fail({ namespace, uid }: AdmissionRequest, error: unknown): AdmissionResponse {
    const { subject, component, log, onFault } = this.#options;
    if (error instanceof MalformedObjectError && onFault === undefined)
      return { allowed: false, reason: error.message, code: 400 };
    log.error({ err: error, namespace, uid }, `review failed: ${messageOf(error)}`);
    return (onFault ?? deny)(
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
