import type { BlockWrite, ReleaseReason } from '../../api/address-block.js';
import {
  type BlockRecord,
  deleteBlock,
  abortBlockRelease,
  lendBlock,
  removeBlockFinalizer,
  markBlock,
  reclaimBlock,
} from '../../addressing/block/block.js';
import type { Cidr } from '../../addressing/address/cidr.js';

/** One write of a block, and the reason for the log. */
export type BlockAction =
  | { readonly kind: 'lend'; readonly pool: string; readonly slice: Cidr; readonly node: string; readonly why: string }
  | { readonly kind: 'mark'; readonly block: BlockRecord; readonly reason: ReleaseReason; readonly why: string }
  /** Aborts a release: the node keeps the block. */
  | { readonly kind: 'abort'; readonly block: BlockRecord; readonly why: string }
  /** `isNodeGone`: the node did not answer because it no longer exists. A live read must confirm that first. */
  | {
      readonly kind: 'reclaim';
      readonly block: BlockRecord;
      readonly reason: ReleaseReason;
      readonly isNodeGone: boolean;
      readonly why: string;
    }
  /** Deletes a block that is in use: its node stops picking from it, and the finalizer keeps it until no pod uses it. */
  | { readonly kind: 'withdraw'; readonly block: BlockRecord; readonly why: string }
  | { readonly kind: 'delete'; readonly block: BlockRecord; readonly why: string }
  /** Removes the finalizer, so that the API server deletes the block. */
  | { readonly kind: 'remove-finalizer'; readonly block: BlockRecord; readonly why: string };

export function writeOf(action: BlockAction): BlockWrite {
  switch (action.kind) {
    case 'lend':
      return lendBlock(action.pool, action.slice, action.node);
    case 'mark':
      return markBlock(action.block, action.reason);
    case 'abort':
      return abortBlockRelease(action.block);
    case 'reclaim':
      return reclaimBlock(action.block, action.isNodeGone);
    case 'withdraw':
    case 'delete':
      return deleteBlock(action.block);
    case 'remove-finalizer':
      return removeBlockFinalizer(action.block);
  }
}
