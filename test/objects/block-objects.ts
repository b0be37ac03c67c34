import type { AddressBlock, AddressBlockStatus } from '../../api/address-block.js';
import { type BlockRecord, lendBlock, readBlock } from '../../addressing/block/block.js';
import { parseCidr } from '../../addressing/address/cidr.js';

/** A stored block of node n1. */
export function blockOf(
  cidr: string,
  version: number,
  { pool = 'blue', node = 'n1', ...status }: BlockOptions = {},
): AddressBlock {
  const write = lendBlock(pool, parseCidr(cidr), node);
  const { metadata } = write.object;
  return { ...write.object, metadata: { ...metadata, uid: 'u1', resourceVersion: String(version) }, status };
}

export function blockRecord(cidr: string, version: number, given: BlockOptions = {}): BlockRecord {
  return readBlock(blockOf(cidr, version, given));
}

export interface BlockOptions extends AddressBlockStatus {
  pool?: string;
  node?: string;
}
