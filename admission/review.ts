import { MAX_MESSAGE_LENGTH } from '../api/limits.js';
import { describeValue, isRecord, truncate } from '../api/json.js';
import type { JsonPatchOperation } from '../kube/client.js';

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
