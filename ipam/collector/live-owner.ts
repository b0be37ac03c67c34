import type { LeaseOwner } from '../../api/address-lease.js';
import type { KubeObject } from '../../api/meta.js';
import { hasUid } from '../../api/pod.js';
import { isProofOfAbsence } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { messageOf } from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';
import { IPAM_CLAIMS, PODS } from '../../kube/resources.js';

/** What the API server says of an owner. `unknown` is no proof of anything. */
export type LiveOwner = { kind: 'gone' } | { kind: 'alive'; object: KubeObject } | { kind: 'unknown'; why: string };

const RESOURCES: Readonly<Record<LeaseOwner['kind'], Resource>> = { IPAMClaim: IPAM_CLAIMS, Pod: PODS };

/**
 * Asks the API server, past its caches and ours, whether an owner still exists. It is gone where the server says that this very object is
 * not there, or where another of its name is: a UID never comes back. A static pod is there while a mirror pod with its UID is. A kind that is not served, a refusal and silence prove nothing.
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
    if (!uid) return { kind: 'unknown', why: 'the answer has no UID' };
    const isIt = owner.kind === 'Pod' ? hasUid(object, owner.uid) : uid === owner.uid;
    return isIt ? { kind: 'alive', object } : { kind: 'gone' };
  } catch (error) {
    return isProofOfAbsence(error, resource, owner.name)
      ? { kind: 'gone' }
      : { kind: 'unknown', why: messageOf(error) };
  }
}
