import type { BlockWrite, ReleaseReason } from '../../api/address-block.js';
import {
  type BlockRecord,
  deleteBlock,
  abortBlockRelease,
  lendBlock,
  removeBlockFinalizer,
  markBlock,
  reclaimBlock,
} from '../core/block.js';
import type { Cidr } from '../core/cidr.js';

/** One write, and why. */
export type BlockAction =
  | { readonly kind: 'lend'; readonly pool: string; readonly slice: Cidr; readonly node: string; readonly why: string }
  | { readonly kind: 'mark'; readonly block: BlockRecord; readonly reason: ReleaseReason; readonly why: string }
  /** It stays its node's, whatever was asked or answered. */
  | { readonly kind: 'keep'; readonly block: BlockRecord; readonly why: string }
  /** `isNodeGone`: nobody has answered; only where the API server, too, knows no such node. */
  | {
      readonly kind: 'take-back';
      readonly block: BlockRecord;
      readonly reason: ReleaseReason;
      readonly isNodeGone: boolean;
      readonly why: string;
    }
  /** Its node picks from it no more, and the finalizer holds it until no pod uses it. */
  | { readonly kind: 'withdraw'; readonly block: BlockRecord; readonly why: string }
  | { readonly kind: 'delete'; readonly block: BlockRecord; readonly why: string }
  /** The finalizer goes, and the object with it. */
  | { readonly kind: 'let-go'; readonly block: BlockRecord; readonly why: string };

export function writeOf(action: BlockAction): BlockWrite {
  switch (action.kind) {
    case 'lend':
      return lendBlock(action.pool, action.slice, action.node);
    case 'mark':
      return markBlock(action.block, action.reason);
    case 'keep':
      return abortBlockRelease(action.block);
    case 'take-back':
      return reclaimBlock(action.block, action.isNodeGone);
    case 'withdraw':
    case 'delete':
      return deleteBlock(action.block);
    case 'let-go':
      return removeBlockFinalizer(action.block);
  }
}
