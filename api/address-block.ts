import type { KubeObject } from './meta.js';

/** AddressBlock, ipam.holdfast.dev/v1alpha1, cluster-scoped: an aligned slice of a pool, lent to one node. A hint that keeps nodes apart. */
export interface AddressBlock extends KubeObject {
  spec: AddressBlockSpec;
  status?: AddressBlockStatus;
}

/** Never changes. */
export interface AddressBlockSpec {
  /** The AddressPool's name. */
  pool: string;
  /** Without host bits, like `10.1.0.64/26`. */
  cidr: string;
  /** From it this node picks addresses for its pods. */
  node: string;
}

export interface AddressBlockStatus {
  /** How far its way back to the pool is: a {@link BlockRelease}; absent: it is the node's. Whoever does not know the word leaves the block alone. */
  release?: string;
  /** Why the pool wants it back: a {@link ReleaseReason}. */
  reason?: string;
}

/** The words of the handshake, each written by one of two who compare before they swap. */
export const BlockRelease = {
  /** By ipam: the node picks no address from it any more, and answers. */
  Marked: 'marked-for-release',
  /** By the agent: no pod of the node has an address of it, nor will one. */
  Ready: 'ready-for-release',
  /** By the agent: a pod of the node has an address of it. */
  Refused: 'do-not-release',
  /** By ipam: it is the pool's again; the object is about to go. */
  Released: 'released',
} as const;
export type BlockRelease = (typeof BlockRelease)[keyof typeof BlockRelease];

export const ReleaseReason = {
  /** The node has more free addresses than it needs: there is time. */
  Excess: 'ExcessAddresses',
  /** Others have too few. */
  Pressure: 'PoolExhausted',
  /** The node is no more. */
  NodeGone: 'NodeGone',
  /** Somebody deletes the block, or its pool; or the pool does not have such a block any more. */
  Withdrawn: 'Withdrawn',
} as const;
export type ReleaseReason = (typeof ReleaseReason)[keyof typeof ReleaseReason];

/** One write of the life of a block; what it is decided on is its precondition. */
export type BlockWrite =
  /** The name is the lock: a slice is lent once. */
  | { readonly verb: 'create'; readonly block: AddressBlock }
  /** A merge patch (RFC 7386) of the status with `metadata.uid` and `metadata.resourceVersion`: compare-and-swap. */
  | { readonly verb: 'patch-status'; readonly name: string; readonly body: object }
  /** The same of the object: the finalizer goes. */
  | { readonly verb: 'patch'; readonly name: string; readonly body: object }
  | { readonly verb: 'delete'; readonly name: string; readonly uid: string; readonly resourceVersion: string };
