import type { AddressPool, AddressPoolStatus } from './address-pool-schema.js';
import type { KubeObject } from './meta.js';
import { POOL_NAD_NAMESPACE } from './names.js';

export type {
  AddressPool,
  AddressPoolSpec,
  AddressPoolStatus,
  GuestBootFile,
  GuestDhcpOption,
  GuestDhcpOptions,
  GuestOptions,
  GuestRoute,
  PoolBlocks,
  PoolSubnet,
} from './address-pool-schema.js';

/** The addresses of one family of a pool. */
export type PoolFamilyCounts = NonNullable<AddressPoolStatus['ipv4']>;

/** The counts of one family. */
export interface ShownFamilyCounts extends PoolFamilyCounts {
  /** Empty if the status was written before families were counted. */
  readonly family: 'IPv4' | 'IPv6' | '';
}

/** Returns the counts of each family that the pool has. They are never added up: a full family would not be seen beside one that is huge. */
export function familyCountsOf({ ipv4, ipv6, ...all }: AddressPoolStatus): ShownFamilyCounts[] {
  const { capacity, leased, cooling, free, reserved } = all;
  if (!ipv4 && !ipv6) return [{ family: '', capacity, leased, cooling, free, reserved }];
  return [
    ...(ipv4 ? [{ family: 'IPv4' as const, ...ipv4 }] : []),
    ...(ipv6 ? [{ family: 'IPv6' as const, ...ipv6 }] : []),
  ];
}

/** Returns the scope in which the pool's addresses are unique. */
export function addressSpaceOf({ spec }: Pick<AddressPool, 'spec'>): string {
  return spec.addressSpace ?? spec.network;
}

/** Returns the namespace of the NADs from which a pool was derived; undefined for an administrator's pool. */
export function nadNamespaceOf(pool: Pick<AddressPool, 'metadata'>): string | undefined {
  return pool.metadata.annotations?.[POOL_NAD_NAMESPACE];
}

/** Whether an administrator created the pool; otherwise it is derived from a NAD. */
export function isAdminPool(pool: Pick<AddressPool, 'metadata'>): boolean {
  return nadNamespaceOf(pool) === undefined;
}

/** Returns the administrator's pool that serves the network of a NAD in its namespace. */
export function adminPoolFor(
  {
    config,
    metadata: { namespace = '' },
  }: KubeObject & { readonly config: { ok: true; network: { name: string } } | { ok: false } },
  pools: readonly AddressPool[],
): AddressPool | undefined {
  const network = config.ok ? config.network.name : undefined;
  return pools.find((pool) => {
    const { network: served, namespaces } = pool.spec;
    return isAdminPool(pool) && served === network && (namespaces === undefined || namespaces.includes(namespace));
  });
}
