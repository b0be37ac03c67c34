import type { AddressBlock } from '../../api/address-block.js';
import type { WatchSpec } from '../../kube/informers.js';
import { ADDRESS_BLOCKS } from '../../kube/resources.js';
import { type BlockRecord, readBlock } from '../block/block.js';

/** Watches blocks. Optional, because blocks are hints, and claims are served without them. */
export const ADDRESS_BLOCK_WATCH: WatchSpec<AddressBlock, BlockRecord> = {
  resource: ADDRESS_BLOCKS,
  transform: readBlock,
  optional: true,
};
