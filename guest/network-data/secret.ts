import type { ClaimOwner } from '../../api/ipam-claim.js';
import { truncate } from '../../api/json.js';
import { KUBEVIRT_API_VERSION, NETWORK_DATA_SECRET_TYPE, WORKLOAD_UID_LABEL } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import { isAlreadyExists, isForbidden, isInvalid, quotaRejectionOf } from '../../kube/errors.js';
import { SECRETS, type Secret } from '../../kube/resources.js';

/** The key from which KubeVirt writes the disk. */
const KEY = 'networkdata';

export interface NetworkDataSecret {
  readonly namespace: string;
  readonly name: string;
  readonly owner: ClaimOwner;
  readonly text: string;
}

/** Why the API server rejects a Secret. */
export interface SecretRejection {
  readonly reason: 'SecretForeign' | 'SecretQuota';
  readonly message: string;
}

/**
 * Creates the Secret or replaces its text, without reading it. A policy denies the write of a Secret of another type or VM.
 * @throws {Error} if the write is to be retried soon
 */
export async function writeSecret(
  client: Pick<Client, 'create' | 'patch'>,
  secret: NetworkDataSecret,
  signal: AbortSignal,
): Promise<SecretRejection | undefined> {
  const { name } = secret;
  try {
    await createOrPatch(client, secretObject(secret), signal);
    return undefined;
  } catch (error) {
    const quota = quotaRejectionOf(error);
    if (quota !== undefined)
      return { reason: 'SecretQuota', message: `Secret ${name} cannot be created: ${truncate(quota)}` };
    // by the policy holdfast-network-data, or because the Secret is immutable
    if (!isForbidden(error) && !isInvalid(error)) throw error;
    const message = `Secret ${name} exists and is not the network data of this VM: delete it, or name another one`;
    return { reason: 'SecretForeign', message };
  }
}

async function createOrPatch(
  client: Pick<Client, 'create' | 'patch'>,
  object: Secret,
  signal: AbortSignal,
): Promise<void> {
  try {
    await client.create(SECRETS, object, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const { namespace = '', name, labels } = object.metadata;
    const body = { metadata: { labels }, data: object.data };
    await client.patch(SECRETS, { namespace, name }, { type: 'merge', body }, { signal });
  }
}

/** Its VM owns it, so that the garbage collector deletes it with the VM. */
function secretObject({ namespace, name, owner, text }: NetworkDataSecret): Secret {
  const { kind, uid } = owner;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      ...{ name, namespace, labels: { [WORKLOAD_UID_LABEL]: uid } },
      ownerReferences: [{ apiVersion: KUBEVIRT_API_VERSION, kind, name: owner.name, uid }],
    },
    type: NETWORK_DATA_SECRET_TYPE,
    data: { [KEY]: Buffer.from(text).toString('base64') },
  };
}
