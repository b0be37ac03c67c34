import type { KubeObject } from '../api/meta.js';
import type { CallOptions, Client } from './client.js';
import { isNotFound } from './errors.js';
import { type ObjectRef, type Resource, groupPath } from './resource.js';
import type { ClientTransport } from './transport/transport.js';

/** Proof that an object is gone, for callers that free what it held. */

/** True if the error proves that the object does not exist. A 404 without its name is about the kind, the path, or a proxy. */
export function isProofOfAbsence(error: unknown, resource: Resource, name: string): boolean {
  if (!isNotFound(error) || error.reason !== 'NotFound' || error.details?.name !== name) return false;
  const { kind = resource.plural, group = resource.group } = error.details;
  return kind === resource.plural && group === resource.group;
}

/**
 * Checks in the discovery documents whether the API server serves all of these kinds.
 * @throws {StatusError | TransportError} if that is unknown
 */
export async function areServed(
  transport: Pick<ClientTransport, 'request'>,
  resources: readonly Resource[],
  signal?: AbortSignal,
): Promise<boolean> {
  for (const path of new Set(resources.map(groupPath))) {
    const wanted = resources.filter((resource) => groupPath(resource) === path);
    const served = await namesServed(transport, path, signal);
    if (!wanted.every(({ plural }) => served.includes(plural))) return false;
  }
  return true;
}

async function namesServed(
  transport: Pick<ClientTransport, 'request'>,
  path: string,
  signal?: AbortSignal,
): Promise<string[]> {
  try {
    const served = (await transport.request({ method: 'GET', path, signal })) as { resources: { name: string }[] };
    return served.resources.map(({ name }) => name);
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

/**
 * Like `client.find`, but throws if the API server does not serve the kind, because that says nothing about the object.
 * @returns undefined if the object does not exist
 */
export async function findUnlessGone<T extends KubeObject>(
  client: Pick<Client, 'get'>,
  resource: Resource<T>,
  ref: ObjectRef,
  call: CallOptions = {},
): Promise<T | undefined> {
  try {
    return await client.get(resource, ref, call);
  } catch (error) {
    if (isProofOfAbsence(error, resource, ref.name)) return undefined;
    throw error;
  }
}
