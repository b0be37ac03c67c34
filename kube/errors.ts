/** What the cause of a metav1.Status says in detail, as far as Holdfast reads it. */
export interface StatusDetails {
  name?: string;
  kind?: string;
  group?: string;
  uid?: string;
  retryAfterSeconds?: number;
  causes?: { reason?: string; message?: string; field?: string }[];
}

export interface StatusErrorInit {
  /** `GET /api/v1/…`, without the query. */
  request: string;
  /** HTTP status. */
  status: number;
  /** metav1.StatusReason, or the HTTP status in words where the body is no Status. */
  reason: string;
  message: string;
  details?: StatusDetails | undefined;
  retryAfterMs?: number | undefined;
}

/** The API server's refusal. The message holds no headers and no bodies, so it is safe to log. */
export class StatusError extends Error {
  readonly status: number;
  readonly reason: string;
  readonly details: StatusDetails | undefined;
  /** How long the server asks us to wait. */
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
 * Why there is no usable answer.
 * - `unsent`: no connection (refused, no route, TLS): the server has not seen the request
 * - `broken`: the connection broke; the server may or may not have acted
 * - `deadline`: no whole answer in time
 * - `idle`: a stream stayed silent for too long
 * - `malformed`: the answer is not what the protocol says
 * - `aborted`: the caller gave up
 */
export type TransportFault = 'unsent' | 'broken' | 'deadline' | 'idle' | 'malformed' | 'aborted';

/** No answer. */
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

/** The object is not what was read: resourceVersion or uid differ. */
export function isConflict(error: unknown): error is StatusError {
  return hasStatus(error, 409) && error.reason !== 'AlreadyExists';
}

export function isAlreadyExists(error: unknown): error is StatusError {
  return hasStatus(error, 409) && error.reason === 'AlreadyExists';
}

/** The resourceVersion or continue token is too old. */
export function isGone(error: unknown): error is StatusError {
  return hasStatus(error, 410);
}

export function isForbidden(error: unknown): error is StatusError {
  return hasStatus(error, 403);
}

/** The object cannot be; or an admission policy says so. */
export function isInvalid(error: unknown): error is StatusError {
  return hasStatus(error, 422) && !isPolicyUnready(error);
}

/** An API server that has just started, or has just got the CRD that a policy reads, cannot judge yet: it says nothing of the object. */
function isPolicyUnready({ message }: StatusError): boolean {
  return /failed to configure (policy|binding)/.test(message);
}

export function isTooManyRequests(error: unknown): error is StatusError {
  return hasStatus(error, 429);
}

/** It learns of new kinds, and after a start of all kinds, within half a minute. */
const POLICY_RETRY_MS = 2_000;

/** How long to wait before the same request is worth another try; undefined: nobody knows, so back off. */
export function retryDelayOf(error: unknown): number | undefined {
  if (!(error instanceof StatusError)) return undefined;
  return error.retryAfterMs ?? (isPolicyUnready(error) ? POLICY_RETRY_MS : undefined);
}

/** Whether a write that failed may have been carried out: there was no answer, or the server failed. Only a read of the object can tell. */
export function mayHaveActed(error: unknown): boolean {
  if (error instanceof TransportError) return error.fault !== 'unsent' && error.fault !== 'aborted';
  return error instanceof StatusError && error.status >= 500;
}

/**
 * - `transient`: the same request may succeed later
 * - `invalid`: it will not succeed until somebody changes something: tell them
 * - `stale`: it was decided on an old view: look again
 */
export type ErrorClass = 'transient' | 'invalid' | 'stale';

export function classifyError(error: unknown): ErrorClass {
  if (!(error instanceof StatusError)) return 'transient';
  switch (error.status) {
    case 404:
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

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
