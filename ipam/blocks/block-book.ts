import type { AddressBlock } from '../../api/address-block.js';
import type { ObjectChange, Informer } from '../../kube/informer.js';
import { isNewer, newerOf } from '../../kube/resource-version.js';
import type { LentAddresses } from '../../addressing/allocator/address-space.js';
import { type BlockRecord, readBlock } from '../../addressing/block/block.js';
import { rangesOf } from '../../addressing/address/cidr.js';
import { RangeSet } from '../../addressing/address/ranges.js';
import { Tombstones } from '../../kube/tombstones.js';

/** A change of one block. */
export interface BlockChange {
  readonly pool: string;
  readonly before?: BlockRecord;
  readonly after?: BlockRecord;
}

interface PoolBlockSet {
  readonly byName: Map<string, BlockRecord>;
  /** Computed on first use. */
  lent?: LentAddresses;
}

const NO_RANGES: LentAddresses = { 4: RangeSet.EMPTY, 6: RangeSet.EMPTY };

/** All blocks from the watch, with the newer writes of this process. */
export class BlockBook {
  readonly #pools = new Map<string, PoolBlockSet>();
  readonly #byNode = new Map<string, Set<BlockRecord>>();
  readonly #gone = new Tombstones();
  readonly #changed: ((change: BlockChange) => void)[] = [];

  /** Subscribes to the watch, which also delivers the blocks that it already has. */
  attach(informer: Pick<Informer<AddressBlock, BlockRecord>, 'onChange'>): void {
    informer.onChange((change) => this.#observe(change));
  }

  /** Handlers are called synchronously for each added, changed or removed block. They may only enqueue. */
  onChange(handler: (change: BlockChange) => void): void {
    this.#changed.push(handler);
  }

  /** The names of all pools that have blocks, even of deleted pools. */
  pools(): readonly string[] {
    return [...this.#pools.keys()];
  }

  ofPool(pool: string): readonly BlockRecord[] {
    return [...(this.#pools.get(pool)?.byName.values() ?? [])];
  }

  /** The names of the pools of a node's blocks. */
  poolsOf(node: string): string[] {
    return [...new Set([...(this.#byNode.get(node) ?? [])].map(({ pool }) => pool))];
  }

  countOf(pool: string): number {
    return this.#pools.get(pool)?.byName.size ?? 0;
  }

  /** The addresses of all blocks of the pool, in any state. Returns the same object until they change. */
  lentOf(pool: string): LentAddresses {
    const blocks = this.#pools.get(pool);
    if (blocks === undefined) return NO_RANGES;
    if (blocks.lent === undefined) {
      const cidrs = [...blocks.byName.values()].map(({ cidr }) => cidr);
      blocks.lent = { 4: rangesOf(cidrs, 4), 6: rangesOf(cidrs, 6) };
    }
    return blocks.lent;
  }

  /** Stores the API server's answer to a write of this process. */
  wrote(block: AddressBlock): void {
    const record = readBlock(block);
    if (!this.#gone.isStaleAnswer(record.metadata)) this.#store(record);
  }

  /** Removes a block that this process deleted or did not find by a live read. */
  forget(block: BlockRecord): void {
    const { name, uid } = block.metadata;
    const known = this.#remove(block);
    this.#gone.noteDeleted(name, uid, known?.metadata.resourceVersion ?? '0');
  }

  #observe({ type, object }: ObjectChange<BlockRecord>): void {
    const { name, uid, resourceVersion } = object.metadata;
    if (type === 'removed') {
      const known = this.#remove(object);
      this.#gone.noteRemoved(name, uid, newerOf(resourceVersion, known?.metadata.resourceVersion ?? '0'));
    } else if (!this.#gone.isStaleEvent(object.metadata)) this.#store(object);
  }

  #store(record: BlockRecord): void {
    const { metadata, pool } = record;
    const { name, uid, resourceVersion } = metadata;
    const blocks: PoolBlockSet = this.#pools.get(pool) ?? { byName: new Map<string, BlockRecord>() };
    const before = blocks.byName.get(name);
    if (before !== undefined && !isNewer(resourceVersion, before.metadata.resourceVersion)) return;
    blocks.byName.set(name, record);
    // the name determines the slice
    if (before === undefined) delete blocks.lent;
    this.#pools.set(pool, blocks);
    this.#index(before, record);
    if (before === undefined || before.metadata.uid === uid) {
      this.#tell({ pool, ...(before && { before }), after: record });
    } else {
      this.#tell({ pool, before });
      this.#tell({ pool, after: record });
    }
  }

  /** @returns the block that was stored, if its UID is the same */
  #remove({ pool, metadata: { name, uid } }: BlockRecord): BlockRecord | undefined {
    const blocks = this.#pools.get(pool);
    const before = blocks?.byName.get(name);
    if (blocks === undefined || before?.metadata.uid !== uid) return undefined;
    blocks.byName.delete(name);
    delete blocks.lent;
    this.#index(before, undefined);
    if (blocks.byName.size === 0) this.#pools.delete(pool);
    this.#tell({ pool, before });
    return before;
  }

  #index(before: BlockRecord | undefined, after: BlockRecord | undefined): void {
    if (before !== undefined) {
      const ofNode = this.#byNode.get(before.node);
      ofNode?.delete(before);
      if (ofNode?.size === 0) this.#byNode.delete(before.node);
    }
    if (after !== undefined) this.#byNode.set(after.node, (this.#byNode.get(after.node) ?? new Set()).add(after));
  }

  #tell(change: BlockChange): void {
    for (const handler of this.#changed) handler(change);
  }
}
