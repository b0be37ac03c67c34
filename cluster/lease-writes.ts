import type { AddressLease, LeaseWrite } from '../api/address-lease.js';
import type { CallOptions, Client } from '../kube/client.js';
import { ADDRESS_LEASES } from '../kube/resources.js';

export type LeaseClient = Pick<Client, 'create' | 'patch' | 'delete'>;

/**
 * Performs one write of the life of a lease.
 * @returns the lease as it is now; undefined where it was deleted, or was gone already
 * @throws {StatusError} 409 AlreadyExists where another creator won, 409 Conflict where the lease has changed since it was read,
 *   404 where there is nothing to patch
 */
export async function writeLease(
  client: LeaseClient,
  write: LeaseWrite,
  call: CallOptions = {},
): Promise<AddressLease | undefined> {
  switch (write.verb) {
    case 'create':
      return client.create(ADDRESS_LEASES, write.lease, call);
    case 'patch':
      return client.patch(ADDRESS_LEASES, { name: write.name }, { type: 'merge', body: write.body }, call);
    case 'delete': {
      const { name, uid, resourceVersion } = write;
      await client.delete(ADDRESS_LEASES, { name }, { ...call, uid, resourceVersion });
      return undefined;
    }
  }
}
