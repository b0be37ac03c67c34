/** The details of a metav1.Status that Holdfast reads. */
export interface StatusDetails {
  name?: string;
  kind?: string;
  group?: string;
  retryAfterSeconds?: number;
  causes?: { reason?: string; message?: string; field?: string }[];
}

interface StatusErrorInit {
  /** `GET /api/v1/…`, without the query. */
  request: string;
  /** HTTP status. */
  status: number;
  /** metav1.StatusReason, or the HTTP status in words if the body is not a Status. */
  reason: string;
  message: string;
  details?: StatusDetails | undefined;
  retryAfterMs?: number | undefined;
}

/** An error response of the API server. The message contains no headers and no request body, so it is safe to log. */
export class StatusError extends Error {
  readonly status: number;
  readonly reason: string;
  readonly details: StatusDetails | undefined;
  /** The delay that the server requests. */
  readonly retryAfterMs: number | undefined;

  constructor(init: StatusErrorInit) {
    super(`${init.request}: ${init.status} ${init.reason}: ${init.message}`);
    this.name = 'StatusError';
    this.status = init.status;
    this.reason = init.reason;
    this.details = init.details;
    this.retryAfterMs = init.retryAfterMs;
  }
}

/**
 * Why there is no usable response.
 * - `unsent`: no connection (refused, no route, TLS): the server has not received the request.
 * - `broken`: the connection broke; the server may have processed the request.
 * - `deadline`: no complete response in time.
 * - `idle`: a stream sent no data for too long.
 * - `malformed`: the response violates the protocol.
 * - `aborted`: the caller aborted the request.
 */
export type TransportFault = 'unsent' | 'broken' | 'deadline' | 'idle' | 'malformed' | 'aborted';

/** A request without a usable response. */
export class TransportError extends Error {
  readonly fault: TransportFault;

  constructor(fault: TransportFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'TransportError';
    this.fault = fault;
  }
}

function hasStatus(error: unknown, status: number): error is StatusError {
  return error instanceof StatusError && error.status === status;
}

export function isNotFound(error: unknown): error is StatusError {
  return hasStatus(error, 404);
}

/** True if the object has changed since it was read: resourceVersion or UID differ. */
export function isConflict(error: unknown): error is StatusError {
  return hasStatus(error, 409) && error.reason !== 'AlreadyExists';
}

export function isAlreadyExists(error: unknown): error is StatusError {
  return hasStatus(error, 409) && error.reason === 'AlreadyExists';
}

/** True if the resourceVersion or continue token is too old. */
export function isGone(error: unknown): error is StatusError {
  return hasStatus(error, 410);
}

export function isForbidden(error: unknown): error is StatusError {
  return hasStatus(error, 403);
}

/** Texts of the admission plugins for ResourceQuotas and OpenShift's ClusterResourceQuotas, which answer with a plain Forbidden. */
const QUOTA_TEXT = /(?:exceeded quota: |status unknown for quota: |insufficient quota to )[^]*/;

/** Returns what the API server says about the quota that rejects an object; undefined for all other errors. */
export function quotaRejectionOf(error: unknown): string | undefined {
  return isForbidden(error) ? QUOTA_TEXT.exec(error.message)?.[0] : undefined;
}

/** True if the namespace of an object does not exist. What is left in such a namespace can be deleted and not changed, until somebody creates it. */
export function isNamespaceMissing(error: unknown): error is StatusError {
  return isNotFound(error) && error.details?.kind === 'namespaces';
}

/** True if the API server or an admission policy rejects the object as invalid. */
export function isInvalid(error: unknown): error is StatusError {
  return hasStatus(error, 422) && !isPolicyUnready(error);
}

/** True if a policy is not ready because the API server or a CRD that the policy reads is new. This says nothing about the object. */
function isPolicyUnready({ message }: StatusError): boolean {
  return /failed to configure (policy|binding)/.test(message);
}

/** An API server learns of new kinds, and after a start of all kinds, within half a minute. */
const POLICY_RETRY_MS = 2_000;

/** Returns how long to wait before the request is retried; undefined if unknown: use a backoff. */
export function retryDelayOf(error: unknown): number | undefined {
  if (!(error instanceof StatusError)) return undefined;
  return error.retryAfterMs ?? (isPolicyUnready(error) ? POLICY_RETRY_MS : undefined);
}

/** Whether the caller aborted the request. A write may still arrive. */
export function isAborted(error: unknown): boolean {
  return error instanceof TransportError && error.fault === 'aborted';
}

/** Whether a write that failed may have been carried out: there was no answer, or the server failed. Only a read of the object can tell. */
export function mayHaveActed(error: unknown): boolean {
  if (error instanceof TransportError) return error.fault !== 'unsent' && error.fault !== 'aborted';
  return error instanceof StatusError && error.status >= 500;
}

/** Whether the API server cannot serve the read now. A recent cached read may then be used instead. */
export function isApiUnavailable(error: unknown): boolean {
  if (error instanceof TransportError) return error.fault !== 'aborted';
  return error instanceof StatusError && (error.status >= 500 || error.status === 429);
}

/**
 * - `transient`: the same request may succeed later
 * - `invalid`: the request fails until a user changes something: report it
 * - `stale`: the decision was based on an old state: read again
 */
export type ErrorClass = 'transient' | 'invalid' | 'stale';

export function classifyError(error: unknown): ErrorClass {
  if (!(error instanceof StatusError)) return 'transient';
  switch (error.status) {
    case 404:
      return isNamespaceMissing(error) ? 'invalid' : 'stale';
    case 409:
      return 'stale';
    case 400:
    case 403:
      return 'invalid';
    case 422:
      return isPolicyUnready(error) ? 'transient' : 'invalid';
    default:
      return 'transient';
  }
}

/** True if the API server, a policy or a webhook rejects the request until somebody changes something. Webhooks that name no code reject with 400. */
export function isRejected(error: unknown): error is StatusError {
  return classifyError(error) === 'invalid';
}

/** Returns the message of a thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The API server's text if it cannot reach an admission webhook whose failures reject requests. */
const FAILURE = /failed calling webhook "([^"]{1,253})": ([^]*)/;
/** Holdfast's webhooks of IPAM; the process `webhook` serves the others. */
const IPAM_WEBHOOKS = ['pools.ipam.holdfast.dev', 'network-attachment-definitions.ipam.holdfast.dev'];

/**
 * Returns what to tell people if the API server rejected a request because an admission webhook does not answer: whose webhook it is, why, and
 * what to do. Undefined for all other errors.
 */
export function webhookFailureOf(error: unknown): string | undefined {
  const [, name, rest = ''] = (error instanceof StatusError && FAILURE.exec(error.message)) || [];
  if (name === undefined) return undefined;
  // the end of a chain of Go errors is the cause
  const cause = rest.split(': ').at(-1)?.slice(0, 200) ?? '';
  const subject = `admission webhook ${name}`;
  if (!name.endsWith('.ipam.holdfast.dev')) {
    return `${subject}, which is not Holdfast's, does not answer (${cause}): find its pods in the ValidatingWebhookConfiguration or MutatingWebhookConfiguration that names it, and repair them`;
  }
  const server = IPAM_WEBHOOKS.includes(name) ? 'ipam' : 'webhook';
  return `${subject} of Holdfast's ${server} does not answer (${cause}): check that one of its pods is ready, with kubectl get pods -A -l app.kubernetes.io/name=holdfast`;
}

/** Returns the message of a failed write for people. */
export function writeFailureOf(error: unknown): string {
  return webhookFailureOf(error) ?? messageOf(error);
}
