import { StatusError } from '../kube/errors.js';

/** An answer of a simulated API server that rejects a request. */
export function apiError(status: number, reason: string, message: string, name: string): StatusError {
  return new StatusError({ request: 'simulated', status, reason, message, details: { name } });
}
