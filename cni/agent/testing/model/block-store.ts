import {
  type AddressBlock,
  type AddressBlockStatus,
  BlockRelease,
  ReleaseReason,
} from '../../../../api/address-block.js';
import { blockName } from '../../../../addressing/block/block.js';
import { parseCidr } from '../../../../addressing/address/cidr.js';
import { ADDRESS_BLOCKS } from '../../../../kube/resources.js';
import type { ObjectTracker } from '../../../../kube/testing/object-tracker.js';
import { blockOf } from '../../../../test/objects/block-objects.js';

/** The blocks of pool blue on the API server. */
export class BlockStore {
  readonly #tracker: ObjectTracker;

  constructor(tracker: ObjectTracker) {
    this.#tracker = tracker;
  }

  /** By name. */
  get blocks(): ReadonlyMap<string, AddressBlock> {
    return this.#tracker.objects(ADDRESS_BLOCKS);
  }

  /** Lends a slice, or changes the status of its block. */
  set(cidr: string, node: string, status: AddressBlockStatus = {}): void {
    const block = blockOf(cidr, 0, { node, ...status });
    const { uid: _uid, ...metadata } = block.metadata;
    this.#tracker.put(ADDRESS_BLOCKS, { ...block, metadata });
  }

  /** Lends a slice, and wants it back. */
  mark(cidr: string, node: string): void {
    this.set(cidr, node, { release: BlockRelease.Marked, reason: ReleaseReason.Excess });
  }

  /** The CIDRs of marked blocks that the agent has not answered. */
  get marked(): string[] {
    const marked = [...this.blocks.values()].filter(({ status }) => status?.release === BlockRelease.Marked);
    return marked.map(({ spec }) => spec.cidr);
  }

  delete(cidr: string): void {
    this.#tracker.remove(ADDRESS_BLOCKS, { name: nameOf(cidr) });
  }

  of(cidr: string): AddressBlock | undefined {
    return this.blocks.get(nameOf(cidr));
  }
}

function nameOf(cidr: string): string {
  return blockName('blue', parseCidr(cidr));
}
