import type { KubeObject } from '../../api/meta.js';
import { StatusError } from '../errors.js';
import type { Resource } from '../resource.js';

/** A kind in any version. */
export type KindName = Pick<Resource, 'group' | 'plural'>;

export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export const BAD_REQUEST = [400, 'BadRequest'] as const;
export const FORBIDDEN = [403, 'Forbidden'] as const;
export const NOT_FOUND = [404, 'NotFound'] as const;
export const ALREADY_EXISTS = [409, 'AlreadyExists'] as const;
export const CONFLICT = [409, 'Conflict'] as const;
export const EXPIRED = [410, 'Expired'] as const;
export const INVALID = [422, 'Invalid'] as const;

/** An answer that rejects a request for an object, with the details that kube-apiserver gives. */
export function refusal(
  { group, plural }: KindName,
  name: string,
  [status, reason]: readonly [number, string],
  message: string,
): StatusError {
  const qualified = group === '' ? plural : `${plural}.${group}`;
  const details = { ...(name !== '' && { name }), ...(group !== '' && { group }), kind: plural };
  return new StatusError({ request: qualified, status, reason, message: `${qualified} "${name}" ${message}`, details });
}

/** @throws {StatusError} 409 Conflict */
export function checkPreconditions(
  kind: KindName,
  { metadata }: KubeObject,
  { uid, resourceVersion }: Preconditions,
): void {
  const differs = (wanted: string | undefined, is: string | undefined) => wanted !== undefined && wanted !== is;
  const what = differs(uid, metadata.uid)
    ? `the UID in the precondition is ${uid}, the UID of the object is ${metadata.uid}`
    : 'the object has been modified; please apply your changes to the latest version and try again';
  if (differs(uid, metadata.uid) || differs(resourceVersion, metadata.resourceVersion))
    throw refusal(kind, metadata.name, CONFLICT, `cannot be changed: ${what}`);
}

/** The body of an answer. */
export function statusOf({ status: code, reason, message, details }: StatusError): object {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details };
}
