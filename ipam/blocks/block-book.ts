import type { AddressBlock } from '../../api/address-block.js';
import { Cache } from '../../kube/informers/cache.js';
import type { Informer } from '../../kube/informers/informer.js';
import { type MutationChange, MutationCache } from '../../kube/informers/mutation-cache.js';
import type { LentAddresses } from '../../addressing/allocator/address-space.js';
import { type BlockRecord, readBlock } from '../../addressing/block/block.js';
import { rangesOf } from '../../addressing/address/cidr.js';
import { RangeSet } from '../../addressing/address/ranges.js';

export type BlockChange = MutationChange<BlockRecord> & { readonly pool: string };

const NO_RANGES: LentAddresses = { 4: RangeSet.EMPTY, 6: RangeSet.EMPTY };

/** All blocks from the watch, with the newer writes of this process. */
export class BlockBook {
  readonly #blocks = new Cache<BlockRecord>({ pool: ({ pool }) => [pool], node: ({ node }) => [node] });
  /** By pool, computed on first use. */
  readonly #lent = new Map<string, LentAddresses>();
  readonly #mutations = new MutationCache<BlockRecord>({
    get: (name) => this.#blocks.get(name),
    set: (block) => {
      // the name determines the slice
      if (this.#blocks.set(block) === undefined) this.#lent.delete(block.pool);
      return block;
    },
    delete: ({ pool, metadata }) => {
      this.#blocks.delete(metadata.name);
      this.#lent.delete(pool);
    },
  });

  /** Subscribes to the watch, which also delivers the blocks that it already has. */
  attach(informer: Pick<Informer<AddressBlock, BlockRecord>, 'onChange'>): void {
    informer.onChange((change) => this.#mutations.observe(change));
  }

  /** Handlers are called synchronously for each added, changed or removed block. They may only enqueue. */
  onChange(handler: (change: BlockChange) => void): void {
    this.#mutations.onChange((change) => handler({ ...change, pool: (change.after ?? change.before).pool }));
  }

  /** The names of all pools that have blocks, even of deleted pools. */
  pools(): readonly string[] {
    return [...new Set(this.#blocks.list().map(({ pool }) => pool))];
  }

  ofPool(pool: string): readonly BlockRecord[] {
    return this.#blocks.byIndex('pool', pool);
  }

  /** The names of the pools of a node's blocks. */
  poolsOf(node: string): string[] {
    return [...new Set(this.#blocks.byIndex('node', node).map(({ pool }) => pool))];
  }

  countOf(pool: string): number {
    return this.#blocks.countByIndex('pool', pool);
  }

  /** The addresses of all blocks of the pool, in any state. Returns the same object until they change. */
  lentOf(pool: string): LentAddresses {
    const known = this.#lent.get(pool);
    if (known !== undefined || this.countOf(pool) === 0) return known ?? NO_RANGES;
    const cidrs = this.ofPool(pool).map(({ cidr }) => cidr);
    const lent = { 4: rangesOf(cidrs, 4), 6: rangesOf(cidrs, 6) };
    this.#lent.set(pool, lent);
    return lent;
  }

  /** Stores the API server's answer to a write of this process. */
  wrote(block: AddressBlock): void {
    this.#mutations.wrote(readBlock(block));
  }

  /** Removes a block that this process deleted or did not find by a live read. */
  forget({ metadata: { name, uid } }: BlockRecord): void {
    this.#mutations.forget(name, uid);
  }
}
