import {
  type AddressBlock,
  type AddressBlockStatus,
  BlockRelease,
  ReleaseReason,
} from '../../../../api/address-block.js';
import { type BlockRecord, readBlock, blockName } from '../../../../addressing/block/block.js';
import { parseCidr } from '../../../../addressing/address/cidr.js';
import { StatusError } from '../../../../kube/errors.js';
import { blockOf } from '../../../../test/block-objects.js';
import { mergePatch } from '../../../../test/merge-patch.js';
import { TestFeed } from './test-feed.js';

/** The blocks of pool blue on the API server. */
export class BlockStore {
  /** By name. */
  readonly blocks = new Map<string, AddressBlock>();
  #version = 0;

  /** Lends a slice, or changes the status of its block. */
  set(cidr: string, node: string, status: AddressBlockStatus = {}): void {
    const known = this.blocks.get(nameOf(cidr));
    const block = blockOf(cidr, ++this.#version, { node, ...status });
    const uid = known?.metadata.uid ?? `block-${this.#version}`;
    this.blocks.set(block.metadata.name, { ...block, metadata: { ...block.metadata, uid } });
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
    this.blocks.delete(nameOf(cidr));
  }

  of(cidr: string): AddressBlock | undefined {
    return this.blocks.get(nameOf(cidr));
  }

  /** Applies a merge patch of the status, with preconditions. */
  patch(name: string, body: { metadata: { uid: string; resourceVersion: string }; status: object }): AddressBlock {
    const found = this.blocks.get(name);
    if (found === undefined) throw refusal(404, 'NotFound', name);
    const { uid, resourceVersion } = found.metadata;
    if (body.metadata.uid !== uid || body.metadata.resourceVersion !== resourceVersion) {
      throw refusal(409, 'Conflict', name);
    }
    const changed = structuredClone(found);
    mergePatch(changed, { status: body.status });
    changed.metadata.resourceVersion = String(++this.#version);
    this.blocks.set(name, changed);
    return structuredClone(changed);
  }
}

export class BlockFeed extends TestFeed<BlockRecord> {
  readonly #store: BlockStore;
  readonly #node: string;

  constructor(store: BlockStore, node: string) {
    super();
    this.#store = store;
    this.#node = node;
  }

  deliver(): void {
    if (this.hasSynced) this.list();
  }

  protected read(): void {
    const own = [...this.#store.blocks.values()].filter(({ spec }) => spec.node === this.#node).map(readBlock);
    const uids = new Set(own.map(({ metadata }) => metadata.uid));
    for (const { metadata } of [...this.cache.values()]) if (!uids.has(metadata.uid)) this.remove(metadata.name);
    for (const block of own) {
      const { name, resourceVersion } = block.metadata;
      if (this.cache.get(name)?.metadata.resourceVersion !== resourceVersion) this.put(block);
    }
  }
}

function nameOf(cidr: string): string {
  return blockName('blue', parseCidr(cidr));
}

function refusal(status: number, reason: string, name: string): StatusError {
  return new StatusError({ request: 'PATCH', status, reason, message: name, details: { name } });
}
