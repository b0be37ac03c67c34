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

/** Types of a pool's conditions. */
export const PoolCondition = {
  /** True with reason `Serving`; False with reason `InvalidSpec`, `Conflict` or `Deleting`. */
  Ready: 'Ready',
  /** Another pool serves its users of the network: reason `OlderPool`, or `AdminPool` for a derived one. */
  Conflict: 'Conflict',
  /** Of a derived pool: all NADs of its namespace and network describe the same pool. */
  NetworksAgree: 'NetworksAgree',
  /** Of a derived pool: its NAD requests something that only an administrator may allow. The message names it. Otherwise absent. */
  NotPermitted: 'NotPermitted',
  /** The pool is being deleted, but some of its addresses are leased, or a CNI ADD may still allocate one. The message names them. */
  DeletionBlocked: 'DeletionBlocked',
  /** A pool with another address space has some of the same addresses on the same layer-2 segment. Otherwise absent. */
  OverlapsOnWire: 'OverlapsOnWire',
  /** Derived pools of namespaces that the pool does not serve have some of its addresses. The message names them. Otherwise absent. */
  UsedByOthers: 'UsedByOthers',
  /** True while addresses of draining ranges are in use; the message names them. False when the ranges can be removed. Otherwise absent. */
  Draining: 'Draining',
  /** New addresses are not probed: reason `ProxyARP`, a host answers for many addresses; or `QuarantineFull`. Otherwise absent. */
  ProbingStopped: 'ProbingStopped',
} as const;
export type PoolCondition = (typeof PoolCondition)[keyof typeof PoolCondition];

/** Returns the scope in which the pool's addresses are unique. */
export function addressSpaceOf({ spec }: Pick<AddressPool, 'spec'>): string {
  return spec.addressSpace ?? spec.network;
}

/** Returns the namespace of the NADs from which a pool was derived; undefined for an administrator's pool. */
export function nadNamespaceOf(pool: Pick<AddressPool, 'metadata'>): string | undefined {
  return pool.metadata.annotations?.[POOL_NAD_NAMESPACE];
}
