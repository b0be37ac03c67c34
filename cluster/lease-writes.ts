import type { AddressLease, LeaseWrite } from '../api/address-lease.js';
import type { CallOptions, Client } from '../kube/client.js';
import { ADDRESS_LEASES } from '../kube/resources.js';

export type LeaseClient = Pick<Client, 'create' | 'patch' | 'delete'>;

/**
 * Performs one write to a lease.
 * @returns the new lease; undefined if it was deleted or did not exist
 * @throws {StatusError} 409 AlreadyExists if another creator won, 409 Conflict if the lease has changed since it was read,
 *   404 if the lease to patch does not exist
 */
export async function writeLease(
  client: LeaseClient,
  write: LeaseWrite,
  call: CallOptions = {},
): Promise<AddressLease | undefined> {
  switch (write.verb) {
    case 'create':
      return client.create(ADDRESS_LEASES, write.object, call);
    case 'patch':
      return client.patch(ADDRESS_LEASES, { name: write.name }, { type: 'merge', body: write.body }, call);
    case 'delete': {
      const { name, uid, resourceVersion } = write;
      await client.delete(ADDRESS_LEASES, { name }, { ...call, uid, resourceVersion });
      return undefined;
    }
  }
}
