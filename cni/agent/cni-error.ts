import { MAX_MESSAGE_LENGTH } from '../../api/limits.js';
import { truncate } from '../../api/json.js';
import { isApiUnavailable, messageOf } from '../../kube/errors.js';

/** Codes of CNI errors (CNI spec 1.1, section 5.4); from 100 on they are a plugin's own. */
export const CniCode = {
  IncompatibleVersion: 1,
  UnsupportedField: 2,
  /** The message names the environment variables. */
  InvalidEnvironment: 4,
  Io: 5,
  Decode: 6,
  /** The message names the key. */
  InvalidConfig: 7,
  /** The same request may succeed later. */
  TryAgain: 11,
  /** STATUS: no ADD can be served. */
  NotAvailable: 50,
  /** The pod may not use the addresses. A retry fails until an object is changed. */
  Refused: 100,
  /** An internal error of the agent. Its log has the details. */
  Internal: 999,
} as const;
export type CniCode = (typeof CniCode)[keyof typeof CniCode];

/** The error that the runtime gets. The message names the field, the value and the remedy. */
export class CniError extends Error {
  override readonly name = 'CniError';
  readonly code: CniCode;
  /** More information for logs. */
  readonly details: string | undefined;

  constructor(code: CniCode, message: string, options: { details?: string; cause?: unknown } = {}) {
    super(truncate(message, MAX_MESSAGE_LENGTH), { cause: options.cause });
    this.code = code;
    this.details = options.details;
  }
}

/** Returns the result of a read. @throws {CniError} 11 if it fails */
export async function readResult<T>(read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    throw asReadError(error);
  }
}

/** Returns the CNI error for a read that failed. */
export function asReadError(error: unknown): CniError {
  const why = messageOf(error);
  if (error instanceof CniError) return error;
  const message = isApiUnavailable(error)
    ? `the API server is not available, and the kubelet retries: ${why}`
    : `a read from the API server failed, and the kubelet retries: ${why}`;
  return new CniError(CniCode.TryAgain, message, { cause: error });
}
