import type { AddressPool, AddressPoolStatus } from './address-pool-schema.js';
import { POOL_NAD_NAMESPACE } from './names.js';

export type {
  AddressPool,
  AddressPoolSpec,
  AddressPoolStatus,
  GuestDhcpOptions,
  GuestOptions,
  GuestRoute,
  PoolBlocks,
  PoolSubnet,
} from './address-pool-schema.js';

/** The addresses of one family of a pool. */
export type PoolFamilyCounts = NonNullable<AddressPoolStatus['ipv4']>;

/** Returns the scope in which the pool's addresses are unique. */
export function addressSpaceOf({ spec }: Pick<AddressPool, 'spec'>): string {
  return spec.addressSpace ?? spec.network;
}

/** Returns the namespace of the NADs from which a pool was derived; undefined for an administrator's pool. */
export function nadNamespaceOf(pool: Pick<AddressPool, 'metadata'>): string | undefined {
  return pool.metadata.annotations?.[POOL_NAD_NAMESPACE];
}
