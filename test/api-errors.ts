import type { KubeObject } from '../api/meta.js';
import { StatusError } from '../kube/errors.js';

export interface Preconditions {
  uid?: string | undefined;
  resourceVersion?: string | undefined;
}

/** An answer of a simulated API server that rejects a request. */
export function apiError(status: number, reason: string, message: string, name: string): StatusError {
  return new StatusError({ request: 'simulated', status, reason, message, details: { name } });
}

/** @throws {StatusError} 409 Conflict if the object is not the one that the preconditions name */
export function checkPreconditions({ metadata }: KubeObject, { uid, resourceVersion }: Preconditions = {}): void {
  const holds =
    (uid === undefined || uid === metadata.uid) &&
    (resourceVersion === undefined || resourceVersion === metadata.resourceVersion);
  if (!holds) throw apiError(409, 'Conflict', 'the precondition does not hold', metadata.name);
}
