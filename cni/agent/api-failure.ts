import { StatusError, TransportError, messageOf } from '../../kube/errors.js';
import { CniCode, CniError } from './cni-error.js';

/** Nobody answered, or the API server said that it cannot now: what was read a moment ago may speak for it. */
export function isApiUnavailable(error: unknown): boolean {
  if (error instanceof TransportError) return error.fault !== 'aborted';
  return error instanceof StatusError && (error.status >= 500 || error.status === 429);
}

/** What a runtime is told of a read that failed. */
export function asReadError(error: unknown): CniError {
  const why = messageOf(error);
  if (error instanceof CniError) return error;
  const message = isApiUnavailable(error)
    ? `the API server is away, try again: ${why}`
    : `the API server has not said what is needed, try again: ${why}`;
  return new CniError(CniCode.TryAgain, message, { cause: error });
}
