import type { AddressBlock } from './address-block-schema.js';

export type { AddressBlock, AddressBlockSpec, AddressBlockStatus } from './address-block-schema.js';

/** The states of the release handshake. Each is written by one side, with compare-and-swap. */
export const BlockRelease = {
  /** By ipam: the node must stop picking addresses from the block, and answer. */
  Marked: 'marked-for-release',
  /** By the agent: no pod of the node has an address of the block or will get one. */
  Ready: 'ready-for-release',
  /** By the agent: a pod of the node has an address of the block. */
  Refused: 'do-not-release',
  /** By ipam: the pool has the block back, and the object is about to be deleted. */
  Released: 'released',
} as const;
export type BlockRelease = (typeof BlockRelease)[keyof typeof BlockRelease];

export const ReleaseReason = {
  /** The node has more free addresses than it needs. This is not urgent. */
  Excess: 'ExcessAddresses',
  /** Other nodes or claims have too few addresses. */
  Pressure: 'PoolExhausted',
  /** The node was deleted. */
  NodeGone: 'NodeGone',
  /** The block or its pool is being deleted, or the pool no longer has such a block. */
  Withdrawn: 'Withdrawn',
} as const;
export type ReleaseReason = (typeof ReleaseReason)[keyof typeof ReleaseReason];

/** One write to a block. Its precondition is the state of the block on which the write was decided. */
export type BlockWrite =
  /** The name is the lock: a slice is assigned once. */
  | { readonly verb: 'create'; readonly block: AddressBlock }
  /** A merge patch (RFC 7386) of the status with `metadata.uid` and `metadata.resourceVersion`: compare-and-swap. */
  | { readonly verb: 'patch-status'; readonly name: string; readonly body: object }
  /** The same for the object itself: removes the finalizer. */
  | { readonly verb: 'patch'; readonly name: string; readonly body: object }
  | { readonly verb: 'delete'; readonly name: string; readonly uid: string; readonly resourceVersion: string };
