import type { GuestOptions } from './guest-options.js';
import type { Condition, KubeObject } from './meta.js';
import { POOL_NAD_NAMESPACE } from './names.js';

/** AddressPool, ipam.holdfast.dev/v1alpha1, cluster-scoped: the addresses of one network. */
export interface AddressPool extends KubeObject {
  spec: AddressPoolSpec;
  status?: AddressPoolStatus;
}

export interface AddressPoolSpec {
  /** The CNI network's name, as in `name` of a NAD's config. 1 to 253 characters. */
  network: string;
  /** The scope in which addresses are unique: pools that share it never allocate an address twice. Default: the network's name. */
  addressSpace?: string;
  /** 1 to 16, each of one family, without overlap. */
  subnets: PoolSubnet[];
  /** The cool-down in seconds: at least twice the time for which agents may answer from their caches. 0 to 86400. */
  cooldownSeconds?: number;
  /** Keeps a released address for the MAC address that had it. */
  stickyMAC?: {
    /** For how long, like `24h` (metav1.Duration). */
    ttl: string;
    /** Also addresses of deleted VMs. Default: only addresses of pods. */
    retain?: boolean;
  };
  /** Prefix lengths of the blocks that are assigned to nodes. Default: 26 and 122. */
  blockSize?: {
    /** 16 to 32. */
    ipv4?: number;
    /** 64 to 128. */
    ipv6?: number;
  };
  /** Labels of the nodes that have the network. Only they get blocks, show free addresses and run responders; absent: all nodes. At most 32. */
  nodeSelector?: Record<string, string>;
  /** Nodes show the number of free addresses as an extended resource, so that the scheduler counts them. */
  publishCapacity?: boolean;
  /** Whether metrics show the pool's addresses by state. Default: true. */
  publishMetrics?: boolean;
  /** The namespaces whose workloads may get addresses; absent: all. At most 256. */
  namespaces?: string[];
  /** Only of an administrator's pool: VMs on NADs of the network without IPAM get addresses too, in the guest. */
  guest?: GuestOptions;
}

/** Elements of `ranges`, `exclude`, `reserved` and `draining` are an address, a CIDR, or `first-last`, within `cidr`. */
export interface PoolSubnet {
  /** Without host bits. Gives the prefix length of the addresses. */
  cidr: string;
  /** What may be allocated; absent: all of `cidr` except the network and broadcast addresses. At most 64. */
  ranges?: string[];
  /** What is never allocated. At most 256. */
  exclude?: string[];
  /** Sent to the pods, and never allocated. */
  gateway?: string;
  /** What is allocated only on request. At most 256. */
  reserved?: string[];
  /** What is to become free: never allocated again, and VMs that do not run get other addresses. At most 256. */
  draining?: string[];
}

/** Counts are capped at 2^53 - 1. `capacity` = `leased` + `cooling` + `free` + `reserved` + `quarantined`. */
export interface AddressPoolStatus {
  observedGeneration?: number;
  /** All addresses that the pool may allocate. */
  capacity: number;
  /** Addresses with a living owner. */
  leased: number;
  /** Leased addresses whose VM does not run. */
  heldByStopped: number;
  /** Released addresses that cool down or are sticky. */
  cooling: number;
  /** Addresses that can be allocated to claims and pods that request no particular address. */
  free: number;
  /** Addresses that are not in use and are allocated only on request. */
  reserved: number;
  /** Addresses that nobody gets for a while, because a host that Holdfast does not know has them. Absent if there are none. */
  quarantined?: number;
  /** Held and reserved addresses of draining ranges. Absent if the pool has no such range. */
  draining?: number;
  /** Absent if the pool has no addresses of the family. */
  ipv4?: PoolFamilyCounts;
  ipv6?: PoolFamilyCounts;
  /** Absent if no blocks are assigned to nodes. */
  blocks?: PoolBlocks;
  conditions?: Condition[];
}

/** The addresses of one family of a pool. Counts are capped at 2^53 - 1. */
export type PoolFamilyCounts = Pick<
  AddressPoolStatus,
  'capacity' | 'leased' | 'cooling' | 'free' | 'reserved' | 'quarantined'
>;

/** The aligned slices of a pool, which can be assigned to nodes. Counts are capped at 2^53 - 1. */
export interface PoolBlocks {
  /** All slices with an address that may be allocated without a request for it, in use or not. */
  total: number;
  /** Slices in which every address is in use or cools down. */
  full: number;
  /** Slices that are assigned to a node by an AddressBlock. */
  lent: number;
  /** The slice from which the next claim gets its address, a CIDR. */
  current?: string;
}

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
