import { STATUS_CODES, type IncomingHttpHeaders } from 'node:http';
import { isRecord, asRecord, asString } from '../api/json.js';
import { StatusError, type StatusDetails, TransportError } from './errors.js';

interface StatusBody {
  kind?: string;
  reason?: string;
  message?: string;
  code?: number;
  details?: StatusDetails;
}

/** Converts an error response into a StatusError. A body that is not a metav1.Status, such as a proxy's page, is quoted in part. */
export function statusErrorOf(
  request: string,
  status: number,
  headers: IncomingHttpHeaders,
  text: string,
): StatusError {
  const body = parseStatus(text);
  const words = STATUS_CODES[status] ?? 'Unknown';
  return new StatusError({
    request,
    status,
    reason: body.reason || words.replaceAll(' ', ''),
    message: body.message || text.slice(0, 200).trim() || words,
    details: body.details,
    retryAfterMs: retryAfterOf(headers['retry-after'], body.details),
  });
}

/** Converts the object of a watch's ERROR event, a metav1.Status, into a StatusError. */
export function statusErrorOfEvent(request: string, object: unknown): StatusError {
  const body: StatusBody = asRecord(object);
  return statusErrorOf(request, body.code ?? 500, {}, JSON.stringify(object ?? {}));
}

function parseStatus(text: string): StatusBody {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && value.kind === 'Status' ? value : {};
  } catch {
    return {};
  }
}

/** An API server requests seconds. A proxy that requests hours must not stop a watch for so long. */
const MAX_RETRY_AFTER_MS = 60_000;

function retryAfterOf(header: string | string[] | undefined, details: StatusDetails | undefined): number | undefined {
  const seconds = Number(header ?? details?.retryAfterSeconds ?? NaN);
  return seconds >= 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : undefined;
}

/** Codes of node:net, node:dns and undici which mean that no connection was made. TLS errors are recognized by their prefix. */
const UNSENT_CODES = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EMFILE',
  'UND_ERR_CONNECT_TIMEOUT',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]);

/** Converts an error of undici into a TransportError. */
export function transportErrorOf(request: string, error: unknown): TransportError {
  if (error instanceof TransportError)
    return new TransportError(error.fault, `${request}: ${error.message}`, error.cause);
  const { code = '', message } = describeThrown(error);
  const unsent =
    UNSENT_CODES.has(code) || code.startsWith('CERT_') || code.startsWith('ERR_TLS') || code.startsWith('ERR_SSL');
  const detail = [code, message].filter((part) => part !== '').join(': ');
  return new TransportError(unsent ? 'unsent' : 'broken', `${request}: ${detail}`, error);
}

function describeThrown(error: unknown): { code?: string; message: string } {
  if (!isRecord(error)) return { message: String(error) };
  return { code: asString(error.code), message: asString(error.message) };
}
