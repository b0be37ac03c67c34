import type { AddressBlock, AddressBlockStatus } from '../../../../api/address-block.js';
import { blockName } from '../../../../ipam/core/block-name.js';
import { type BlockRecord, readBlock } from '../../../../ipam/core/block.js';
import { parseCidr } from '../../../../ipam/core/cidr.js';
import { StatusError } from '../../../../kube/errors.js';
import type { ObjectChange } from '../../../../kube/informer.js';
import { blockOf } from '../../../../test/block-objects.js';
import { mergePatch } from '../../../../test/merge-patch.js';

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

  /** Deletes the block of a slice. */
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

/** An informer of the blocks of a node that lists on request. */
export class BlockFeed {
  hasSynced = false;
  isRunning = false;
  readonly #store: BlockStore;
  readonly #node: string;
  readonly #cache = new Map<string, BlockRecord>();
  readonly #handlers: ((change: ObjectChange<BlockRecord>) => void)[] = [];
  #waiting: (() => void)[] = [];

  constructor(store: BlockStore, node: string) {
    this.#store = store;
    this.#node = node;
  }

  start(): void {
    this.isRunning = true;
  }

  synced(): Promise<void> {
    return this.hasSynced ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  onChange(handler: (change: ObjectChange<BlockRecord>) => void): void {
    this.#handlers.push(handler);
  }

  /** Lists the blocks; those that were created and deleted since the last list are never shown. */
  list(): void {
    if (!this.isRunning) return;
    const own = [...this.#store.blocks.values()].filter(({ spec }) => spec.node === this.#node).map(readBlock);
    const names = new Map(own.map((block) => [block.metadata.name, block]));
    for (const [name, block] of this.#cache) {
      if (names.get(name)?.metadata.uid === block.metadata.uid) continue;
      this.#cache.delete(name);
      this.#tell({ type: 'removed', object: block, before: block });
    }
    for (const [name, object] of names) {
      const before = this.#cache.get(name);
      this.#cache.set(name, object);
      if (before === undefined) this.#tell({ type: 'added', object });
      else if (before.metadata.resourceVersion !== object.metadata.resourceVersion)
        this.#tell({ type: 'changed', object, before });
    }
    this.hasSynced = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  deliver(): void {
    if (this.hasSynced) this.list();
  }

  #tell(change: ObjectChange<BlockRecord>): void {
    for (const handler of this.#handlers) handler(change);
  }
}

function nameOf(cidr: string): string {
  return blockName('blue', parseCidr(cidr));
}

function refusal(status: number, reason: string, name: string): StatusError {
  return new StatusError({ request: 'PATCH', status, reason, message: name, details: { name } });
}
