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
  /** Addresses are unique within it; pools that share one never lease an address twice. Default: the network's name. */
  addressSpace?: string;
  /** 1 to 16, each of one family; they may not overlap. */
  subnets: PoolSubnet[];
  /** Seconds from an address's release until it may be leased again; at least twice what agents may answer from cache. 0 to 86400. */
  cooldownSeconds?: number;
  /** A released address is kept for the MAC address that had it. */
  stickyMAC?: {
    /** For how long, like `24h` (metav1.Duration). */
    ttl: string;
    /** Those of deleted VMs, too. Default: those of pods alone. */
    retain?: boolean;
  };
  /** Prefix lengths of the blocks that nodes are lent. Default: 26 and 122. */
  blockSize?: {
    /** 16 to 32. */
    ipv4?: number;
    /** 64 to 128. */
    ipv6?: number;
  };
  /** Labels of the nodes that have the network: blocks are lent and free addresses are shown to them alone; absent: to all. At most 32. */
  nodeSelector?: Record<string, string>;
  /** Nodes show how many addresses are free, so that the scheduler counts them. */
  publishCapacity?: boolean;
  /** The namespaces whose workloads may draw from it; absent: all. At most 256. */
  namespaces?: string[];
}

/** Elements of `ranges`, `exclude` and `reserved` are an address, a CIDR, or `first-last`, within `cidr`. */
export interface PoolSubnet {
  /** Without host bits. Gives the prefix length of the addresses. */
  cidr: string;
  /** What may be leased; absent: all of `cidr` but the network and broadcast address. At most 64. */
  ranges?: string[];
  /** What is never leased. At most 256. */
  exclude?: string[];
  /** Told to the pods, and never leased. */
  gateway?: string;
  /** What is leased on request alone. At most 256. */
  reserved?: string[];
}

/** Counts are capped at 2^53 - 1. `capacity` = `leased` + `cooling` + `free` + `reserved`. */
export interface AddressPoolStatus {
  observedGeneration?: number;
  /** All addresses that the pool may lease. */
  capacity: number;
  /** Addresses with a living owner. */
  leased: number;
  /** Of the leased ones: those whose VM does not run. */
  heldByStopped: number;
  /** Released addresses that nobody else may have yet. */
  cooling: number;
  /** What is left for those who ask for no address in particular. */
  free: number;
  /** Not in use, and leased on request alone. */
  reserved: number;
  /** Absent where no blocks are lent. */
  blocks?: PoolBlocks;
  conditions?: Condition[];
}

/** The aligned slices of a pool of which nodes are lent some. Counts are capped at 2^53 - 1. */
export interface PoolBlocks {
  /** Those with an address that may be leased to anybody. */
  total: number;
  /** Of which each address is in use or cools down. */
  full: number;
  /** An AddressBlock each. */
  lent: number;
  /** The slice from which the next claim is served, a CIDR. */
  current?: string;
}

/** Types of a pool's conditions. */
export const PoolCondition = {
  /** It serves: reason `Serving`; or why not: `InvalidSpec`, `Conflict`, `Deleting`. */
  Ready: 'Ready',
  /** Another pool serves its users of the network: reason `OlderPool`, or `AdminPool` for a derived one. */
  Conflict: 'Conflict',
  /** Of a derived pool: all NADs of its namespace and network say the same. */
  NetworksAgree: 'NetworksAgree',
  /** Of a derived pool: its NAD asks for what needs an administrator; the message says for what. Absent otherwise. */
  NotPermitted: 'NotPermitted',
  /** It is being deleted, and addresses of it are leased, or a CNI ADD may still lease one: the message says which. */
  DeletionBlocked: 'DeletionBlocked',
  /** Another pool has some of its addresses in another address space, on the same layer-2 segment. Absent if not. */
  OverlapsOnWire: 'OverlapsOnWire',
} as const;
export type PoolCondition = (typeof PoolCondition)[keyof typeof PoolCondition];

/** Where its addresses are unique. */
export function addressSpaceOf({ spec }: Pick<AddressPool, 'spec'>): string {
  return spec.addressSpace ?? spec.network;
}

/** The namespace of the NADs that a derived pool was made from; undefined for a pool of an admin. */
export function nadNamespaceOf(pool: Pick<AddressPool, 'metadata'>): string | undefined {
  return pool.metadata.annotations?.[POOL_NAD_NAMESPACE];
}
