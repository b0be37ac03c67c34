import type { ClaimOwner } from '../../api/ipam-claim.js';
import { truncate } from '../../api/json.js';
import {
  EXCLUDE_FROM_BACKUP_LABEL,
  KUBEVIRT_API_VERSION,
  NETWORK_DATA_SECRET_TYPE,
  WORKLOAD_UID_LABEL,
} from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isAborted, isNotFound, isRejected, mayHaveActed, quotaRejectionOf } from '../../kube/errors.js';
import { SECRETS, type Secret } from '../../kube/resources.js';

/** The key from which KubeVirt writes the disk. */
const KEY = 'networkdata';
/** Of what the API server says in a condition. */
const MAX_QUOTED = 512;

/** A Secret, and the VM that owns it. */
export interface SecretOfVm {
  readonly namespace: string;
  readonly name: string;
  readonly owner: ClaimOwner;
}

/** What the policy holdfast-network-data says of a Secret that exists and has another type, or belongs to another VM. */
const FOREIGN = /'holdfast-network-data'[^]* may only write (Secrets of the type|the Secret of the VM) /;

/** Why the API server rejects a Secret. */
interface SecretRejection {
  readonly reason: 'SecretForeign' | 'SecretQuota' | 'SecretRejected';
  readonly message: string;
}

/**
 * Replaces the text of the Secret or creates it, without reading it. A policy denies the write of a Secret of another type or VM.
 * @throws {Error} if the write is to be retried soon
 */
export function writeSecret(
  client: Pick<Client, 'create' | 'patch'>,
  secret: SecretOfVm,
  text: string,
  signal: AbortSignal,
): Promise<SecretRejection | undefined> {
  const data = { [KEY]: Buffer.from(text).toString('base64') };
  return rejectionOf(secret, async () => {
    // first, because a full quota rejects the creation of a Secret that exists too
    if (await patchSecret(client, secret, data, signal)) return;
    const { name, namespace } = secret;
    const metadata = { name, namespace, ...metadataOf(secret) };
    await client.create(
      SECRETS,
      { apiVersion: 'v1', kind: 'Secret', metadata, type: NETWORK_DATA_SECRET_TYPE, data },
      { signal },
    );
  });
}

/**
 * Removes the text from the Secret, if it exists.
 * @throws {Error} if the write is to be retried soon
 */
export function withdrawSecret(
  client: Pick<Client, 'patch'>,
  secret: SecretOfVm,
  signal: AbortSignal,
): Promise<SecretRejection | undefined> {
  return rejectionOf(secret, async () => {
    await patchSecret(client, secret, { [KEY]: null }, signal);
  });
}

async function rejectionOf({ name }: SecretOfVm, write: () => Promise<void>): Promise<SecretRejection | undefined> {
  try {
    await write();
    return undefined;
  } catch (error) {
    const quota = quotaRejectionOf(error);
    if (quota !== undefined)
      return { reason: 'SecretQuota', message: `Secret ${name} cannot be created: ${truncate(quota)}` };
    if (!isRejected(error)) throw error;
    if (!FOREIGN.test(error.message)) {
      const message = `Secret ${name} cannot be written: ${truncate(error.message, MAX_QUOTED)}`;
      return { reason: 'SecretRejected', message };
    }
    const message = `Secret ${name} exists and is not the network data of this VM: delete it, or name another one`;
    return { reason: 'SecretForeign', message };
  }
}

/** An API server works on a request for 34 s at most. */
const ARRIVES_WITHIN_MS = 60_000;

/**
 * Writes without an answer that may still arrive: of Secrets, by workload, and unlocks of leases, by version. A write of a Secret that arrives late
 * replaces what was written after it: no version of the Secret is known. They outlive the term, because a process that loses its Lease may have it
 * again at once.
 */
export class UnansweredWrites {
  readonly #clock: Pick<Clock, 'now'>;
  /** In the order of the times. */
  readonly #until = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Awaits the answer, and remembers the write if there is none. */
  async answerOf<T>(key: string, write: Promise<T>): Promise<T> {
    try {
      return await write;
    } catch (error) {
      if (mayHaveActed(error) || isAborted(error)) this.#remember(key);
      throw error;
    }
  }

  get size(): number {
    return this.#until.size;
  }

  #remember(key: string): void {
    const now = this.#clock.now();
    for (const [each, until] of this.#until) {
      if (until > now) break;
      this.#until.delete(each);
    }
    this.#until.delete(key);
    this.#until.set(key, now + ARRIVES_WITHIN_MS);
  }

  /** Milliseconds until none of them can arrive any more. */
  remainingMs(key: string): number {
    return Math.max(0, (this.#until.get(key) ?? 0) - this.#clock.now());
  }

  forget(key: string): void {
    this.#until.delete(key);
  }
}

/** @returns false if there is no such Secret */
async function patchSecret(
  client: Pick<Client, 'patch'>,
  secret: SecretOfVm,
  data: Record<string, string | null>,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace, name } = secret;
  const body = { metadata: metadataOf(secret), data };
  try {
    await client.patch(SECRETS, { namespace, name }, { type: 'merge', body }, { signal });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** Its VM owns it, so that the garbage collector deletes it with the VM. A backup would bring back addresses that others have meanwhile. */
function metadataOf({
  owner: { kind, name, uid },
}: SecretOfVm): Pick<Secret['metadata'], 'labels' | 'ownerReferences'> {
  return {
    labels: { [WORKLOAD_UID_LABEL]: uid, [EXCLUDE_FROM_BACKUP_LABEL]: 'true' },
    ownerReferences: [{ apiVersion: KUBEVIRT_API_VERSION, kind, name, uid }],
  };
}
