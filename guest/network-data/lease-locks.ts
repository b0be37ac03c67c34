import { lockForNetworkData, unlockFromNetworkData } from '../../addressing/lease/lease-network-data.js';
import { type LeaseRecord, readLease, stateOf } from '../../addressing/lease/lease.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { isNotFound } from '../../kube/errors.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { SecretOfVm } from './secret.js';

/** Locks of leases whose addresses a Secret may hold. They tell a new leader which Secrets its predecessor wrote. */

type LockClient = Pick<Client, 'patch' | 'find'>;

/** A Secret that a workload may not have. */
type SecretOfWorkload = Omit<SecretOfVm, 'name'> & { readonly name: string | undefined };

/** @returns the Secret that may hold the address */
export function lockedSecretOf({ networkData }: LeaseRecord): SecretOfVm | undefined {
  if (networkData === undefined) return undefined;
  const { namespace, secret, owner } = networkData;
  return { namespace, name: secret, owner };
}

/** True if the Secret should hold the address. @param leases of the addresses that it should hold; undefined: none */
export function isLockedFor(
  lease: LeaseRecord,
  secret: SecretOfWorkload,
  leases: ReadonlySet<string> | undefined,
): boolean {
  const isWanted = stateOf(lease) === 'held' && leases?.has(lease.metadata.name) === true;
  return isWanted && isSameSecret(lockedSecretOf(lease), secret);
}

function isSameSecret(one: SecretOfVm | undefined, { namespace, name, owner }: SecretOfWorkload): boolean {
  return one?.namespace === namespace && one.name === name && one.owner.uid === owner.uid;
}

/**
 * Locks the addresses, before they are written into the Secret.
 * @throws {Error} if one of them is locked for another Secret, or the API server does not keep the lock
 */
export async function lockAll(
  client: LockClient,
  leases: Iterable<LeaseRecord>,
  secret: SecretOfVm,
  signal: AbortSignal,
): Promise<void> {
  for (const lease of leases) {
    const locked = lockedSecretOf(lease);
    if (isSameSecret(locked, secret)) continue;
    const { namespace, owner } = secret;
    if (locked !== undefined)
      throw new Error(
        `AddressLease ${lease.metadata.name} is still locked for Secret ${locked.namespace}/${locked.name}`,
      );
    const { name, body } = lockForNetworkData(lease, { namespace, secret: secret.name, owner });
    const call = { signal, tenant: namespace };
    const written = await client.patch(ADDRESS_LEASES, { name }, { type: 'merge', body }, call);
    // an older CRD drops the field without an error
    if (written.spec.networkData === undefined)
      throw new Error(
        `AddressLease ${name} cannot be locked for Secret ${secret.name}: apply the CRDs of this release`,
      );
  }
}

/** Unlocks the lease, if it still exists. @throws {Error} if it has changed since it was read */
export async function unlock(client: LockClient, lease: LeaseRecord, call: CallOptions): Promise<void> {
  const { name, body } = unlockFromNetworkData(lease);
  try {
    await client.patch(ADDRESS_LEASES, { name }, { type: 'merge', body }, call);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** Reads the lease from the API server. @returns undefined if there is none */
export async function readLive(client: LockClient, name: string, call: CallOptions): Promise<LeaseRecord | undefined> {
  const found = await client.find(ADDRESS_LEASES, { name }, call);
  return found === undefined ? undefined : readLease(found);
}
