import type { LeaseOwner } from '../../api/address-lease.js';
import type { KubeObject } from '../../api/meta.js';
import { hasUid } from '../../api/pod.js';
import { isProofOfAbsence } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { messageOf } from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';
import { IPAM_CLAIMS, PODS } from '../../kube/resources.js';

/** The state of an owner according to the API server. `unknown` proves nothing. */
export type LiveOwner = { kind: 'gone' } | { kind: 'alive'; object: KubeObject } | { kind: 'unknown'; why: string };

const RESOURCES: Readonly<Record<LeaseOwner['kind'], Resource>> = { IPAMClaim: IPAM_CLAIMS, Pod: PODS };

/**
 * Asks the API server, bypassing all caches, whether an owner exists. It is gone if the server does not find it, or finds another object
 * of its name, because UIDs are never reused. A static pod exists while a mirror pod with its UID does. Errors and unserved kinds prove
 * nothing.
 */
export async function readLiveOwner(
  client: Pick<Client, 'get'>,
  owner: LeaseOwner,
  call: CallOptions = {},
): Promise<LiveOwner> {
  const resource = RESOURCES[owner.kind];
  try {
    const object: KubeObject = await client.get(resource, { namespace: owner.namespace, name: owner.name }, call);
    const { uid } = object.metadata;
    if (!uid) return { kind: 'unknown', why: 'the answer of the API server has no UID' };
    const isIt = owner.kind === 'Pod' ? hasUid(object, owner.uid) : uid === owner.uid;
    return isIt ? { kind: 'alive', object } : { kind: 'gone' };
  } catch (error) {
    if (isProofOfAbsence(error, resource, owner.name)) return { kind: 'gone' };
    return { kind: 'unknown', why: messageOf(error) };
  }
}
