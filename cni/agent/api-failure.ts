import { StatusError, TransportError, messageOf } from '../../kube/errors.js';
import { CniCode, CniError } from './cni-error.js';

/** Whether the API server cannot serve the read now. A recent cached read may then be used instead. */
export function isApiUnavailable(error: unknown): boolean {
  if (error instanceof TransportError) return error.fault !== 'aborted';
  return error instanceof StatusError && (error.status >= 500 || error.status === 429);
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
