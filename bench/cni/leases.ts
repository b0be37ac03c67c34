import type { AddressLease } from '../../api/address-lease.js';
import { LEASE_OWNER_NAMESPACE, LEASE_POOL } from '../../api/names.js';
import { leaseNamed } from '../../bed/story/addresses.js';
import { formatAddress } from '../../addressing/address/address.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { runLoad } from '../load.js';
import { type CniCluster, NAMESPACE } from './cluster.js';

/** Returns the leases that pods hold or have released. */
export async function leasesOf({ plane }: CniCluster, pool: Pool): Promise<AddressLease[]> {
  const labelSelector = `${LEASE_OWNER_NAMESPACE}=${NAMESPACE},${LEASE_POOL}=${pool.name}`;
  return (await plane.client.list(ADDRESS_LEASES, { labelSelector })).items;
}

/** Creates reservations. @param from value of the first address */
export async function createReservations(
  { ipam }: CniCluster,
  pool: Pool,
  { from, count }: { from: bigint; count: number },
): Promise<void> {
  const create = async (n: number) => {
    const address = formatAddress({ family: 4, value: from + BigInt(n) });
    await ipam.create(ADDRESS_LEASES, leaseNamed(pool.addressSpace, address, { pool: pool.name }));
  };
  await runLoad(create, { count, concurrency: 64 });
}

/** Deletes all leases, so that the next measurement starts with the same pool. */
export async function removeLeases(cluster: CniCluster, pool: Pool): Promise<void> {
  const leases = await leasesOf(cluster, pool);
  const remove = (n: number) =>
    cluster.ipam.delete(ADDRESS_LEASES, { name: leases[n]!.metadata.name }).then(() => undefined);
  await runLoad(remove, { count: leases.length, concurrency: 16 });
}
