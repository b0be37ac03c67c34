import type { ClaimOwner } from '../../api/ipam-claim.js';
import { truncate } from '../../api/json.js';
import {
  EXCLUDE_FROM_BACKUP_LABEL,
  KUBEVIRT_API_VERSION,
  NETWORK_DATA_SECRET_TYPE,
  WORKLOAD_UID_LABEL,
} from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import { isAlreadyExists, isForbidden, isInvalid, isNotFound, quotaRejectionOf } from '../../kube/errors.js';
import { SECRETS, type Secret } from '../../kube/resources.js';

/** The key from which KubeVirt writes the disk. */
const KEY = 'networkdata';
/** Of what the API server says in a condition. */
const MAX_QUOTED = 512;

export interface NetworkDataSecret {
  readonly namespace: string;
  readonly name: string;
  readonly owner: ClaimOwner;
  readonly text: string;
}

/** Why the API server rejects a Secret. */
export interface SecretRejection {
  readonly reason: 'SecretForeign' | 'SecretQuota' | 'SecretRejected';
  readonly message: string;
}

/** In the answer of the API server if the policy denies the write of a Secret that has another type, or is of another VM. */
const DENIED_BY_POLICY = "ValidatingAdmissionPolicy 'holdfast-network-data'";
/** In the answer of the API server if a user has made the Secret immutable. */
const IMMUTABLE = 'field is immutable when `immutable` is set';

type SecretClient = Pick<Client, 'create' | 'patch'>;

/**
 * Creates the Secret or replaces its text, without reading it. A policy denies the write of a Secret of another type or VM.
 * @throws {Error} if the write is to be retried soon
 */
export async function writeSecret(
  client: SecretClient,
  secret: NetworkDataSecret,
  signal: AbortSignal,
): Promise<SecretRejection | undefined> {
  const object = secretObject(secret);
  try {
    await client.create(SECRETS, object, { signal });
    return undefined;
  } catch (error) {
    if (!isAlreadyExists(error)) return rejectionOf(secret, error, 'create');
  }
  return patchSecret(client, secret, object.data, signal);
}

/**
 * Removes the text from the Secret. A Secret that does not exist, or is not the network data of this VM, has nothing to remove.
 * @throws {Error} if it may still have the text
 */
export async function withdrawSecret(
  client: SecretClient,
  secret: Omit<NetworkDataSecret, 'text'>,
  signal: AbortSignal,
): Promise<void> {
  try {
    const rejection = await patchSecret(client, secret, { [KEY]: null }, signal);
    if (rejection !== undefined && rejection.reason !== 'SecretForeign') throw new Error(rejection.message);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

async function patchSecret(
  client: SecretClient,
  secret: Omit<NetworkDataSecret, 'text'>,
  data: Readonly<Record<string, string | null>> | undefined,
  signal: AbortSignal,
): Promise<SecretRejection | undefined> {
  const { name, namespace } = secret;
  try {
    // labels and owner too: a Secret that was restored from a backup has the UID of the former VM, and no owner
    const body = { metadata: ownMetadata(secret), data };
    await client.patch(SECRETS, { namespace, name }, { type: 'merge', body }, { signal });
    return undefined;
  } catch (error) {
    return rejectionOf(secret, error, 'patch');
  }
}

/** @throws the error if it does not concern this Secret */
function rejectionOf({ name }: { name: string }, error: unknown, verb: 'create' | 'patch'): SecretRejection {
  const quota = quotaRejectionOf(error);
  if (quota !== undefined)
    return { reason: 'SecretQuota', message: `Secret ${name} cannot be created: ${truncate(quota)}` };
  if (!isForbidden(error) && !isInvalid(error)) throw error;
  const { message } = error;
  if (verb === 'patch' && (message.includes(DENIED_BY_POLICY) || message.includes(IMMUTABLE))) {
    const text = `Secret ${name} exists and is not the network data of this VM: delete it, or name another one`;
    return { reason: 'SecretForeign', message: text };
  }
  return { reason: 'SecretRejected', message: `Secret ${name} cannot be written: ${truncate(message, MAX_QUOTED)}` };
}

function secretObject(secret: NetworkDataSecret): Secret {
  const { namespace, name, text } = secret;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, ...ownMetadata(secret) },
    type: NETWORK_DATA_SECRET_TYPE,
    data: { [KEY]: Buffer.from(text).toString('base64') },
  };
}

/** Its VM owns it, so that the garbage collector deletes it with the VM. A backup of it would bring back addresses that others may have then. */
function ownMetadata({ owner: { kind, name, uid } }: Pick<NetworkDataSecret, 'owner'>) {
  return {
    labels: { [WORKLOAD_UID_LABEL]: uid, [EXCLUDE_FROM_BACKUP_LABEL]: 'true' },
    ownerReferences: [{ apiVersion: KUBEVIRT_API_VERSION, kind, name, uid }],
  };
}
