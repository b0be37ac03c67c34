import type { AddressBlock } from './address-block-schema.js';
import type { ObjectPatch, ObjectWrite } from './meta.js';

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

/** The release state is in the status, which is written alone. */
export type BlockStatusPatch = ObjectPatch<'patch-status'>;
export type BlockWrite = ObjectWrite<AddressBlock> | BlockStatusPatch;
