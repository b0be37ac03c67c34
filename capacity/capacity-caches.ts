import type { AddressBlock } from '../api/address-block.js';
import type { AddressLease } from '../api/address-lease.js';
import { nadNamespaceOf } from '../api/address-pool.js';
import type { Pod } from '../api/pod.js';
import { ADDRESS_LEASES, PODS } from '../kube/resources.js';
import type { ProcessContext } from '../process/context.js';
import type { WatchSpec } from '../kube/informers.js';
import { createPoolDirectory } from '../addressing/directory/create-directory.js';
import type { PoolDirectory } from '../addressing/directory/directory.js';
import { ADDRESS_POOL_WATCH } from '../cluster/watch-specs.js';
import { ADDRESS_BLOCK_WATCH } from '../addressing/directory/block-watch.js';
import type { BlockRecord } from '../addressing/block/block.js';
import type { Pool } from '../addressing/pool/pool.js';
import type { PublishingPool } from './chosen-pools.js';
import { FilteredInformer } from './filtered-informer.js';
import { NODE_RECORDS, type NodeRecord, isSameNodeState } from './node-record.js';
import { type PodRecord, readPodRecord } from './pod-record.js';
import { Inventory, type InventoryEntry, readInventoryEntry } from './inventory.js';

const BY_POOL = 'pool';
const BLOCK_RECORDS: WatchSpec<AddressBlock, BlockRecord> = {
  ...ADDRESS_BLOCK_WATCH,
  indexes: { [BY_POOL]: ({ pool }) => [pool] },
};
/** NADs decide which namespaces a pool serves, which is not needed here. */
const NO_NETWORKS = { cache: { list: () => [], get: () => undefined }, isServed: true, onChange: () => undefined };

export interface CapacityCachesOptions {
  readonly context: ProcessContext;
  /** Whether blocks are watched. */
  readonly hasNodeBlocks: boolean;
  /** Called when nodes may have to show other values. */
  readonly onChange: () => void;
}

/** The caches of this process. It watches only leases in address spaces of published pools. */
export class CapacityCaches {
  readonly #options: CapacityCachesOptions;
  readonly #pods = new Map<string, PodRecord>();
  readonly #podFeed: FilteredInformer<Pod, PodRecord>;
  readonly #nodes;
  readonly #blocks;
  readonly #pools;
  readonly #directory: PoolDirectory;
  #inventory = new Inventory();
  #spaces: ReadonlySet<string> = new Set();
  #leaseFeed: FilteredInformer<AddressLease, InventoryEntry> | undefined;
  #stopping: Promise<void> = Promise.resolve();

  constructor(options: CapacityCachesOptions) {
    const { context, hasNodeBlocks, onChange } = options;
    const { informers } = context;
    this.#options = options;
    this.#nodes = informers.get(NODE_RECORDS);
    this.#nodes.onChange(({ type, object, before }) => {
      if (type !== 'changed' || before === undefined || !isSameNodeState(before, object)) onChange();
    });
    this.#blocks = hasNodeBlocks ? informers.get(BLOCK_RECORDS) : undefined;
    this.#blocks?.onChange(onChange);
    this.#pools = informers.get(ADDRESS_POOL_WATCH);
    this.#directory = createPoolDirectory({ pools: this.#pools, networks: NO_NETWORKS }, context.clock);
    this.#directory.onChange(onChange);
    this.#podFeed = this.#followPods();
  }

  start(): void {
    this.#podFeed.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#podFeed.stop(), this.#leaseFeed?.stop(), this.#stopping]);
  }

  /** The serving pools with publishCapacity. */
  publishingPools(): readonly PublishingPool[] {
    return this.#pools.cache.list().flatMap((object) => {
      const { name, creationTimestamp: createdAt = '' } = object.metadata;
      const verdict = this.#directory.stateOf(name);
      if (verdict?.kind !== 'served' || !verdict.pool.publishesCapacity) return [];
      return [{ pool: verdict.pool, createdAt, isDerived: nadNamespaceOf(object) !== undefined }];
    });
  }

  /**
   * Watches the leases in the address spaces of the pools.
   * @returns false until the caches have synced
   */
  followLeasesOf(pools: readonly Pool[]): boolean {
    const wanted = new Set(pools.map(({ addressSpace }) => addressSpace));
    if ([...wanted].some((space) => !this.#spaces.has(space)) || (wanted.size === 0 && this.#spaces.size > 0)) {
      this.#followLeases(wanted);
    }
    return this.#podFeed.hasSynced && (wanted.size === 0 || this.#leaseFeed?.hasSynced === true);
  }

  get nodes(): readonly NodeRecord[] {
    return this.#nodes.cache.list();
  }

  get pods(): Iterable<PodRecord> {
    return this.#pods.values();
  }

  get inventory(): Inventory {
    return this.#inventory;
  }

  blocksOf(pool: Pool): readonly BlockRecord[] {
    return this.#blocks?.cache.byIndex(BY_POOL, pool.name) ?? [];
  }

  #followPods(): FilteredInformer<Pod, PodRecord> {
    const { context, onChange } = this.#options;
    return new FilteredInformer<Pod, PodRecord>({
      context,
      resource: PODS,
      select: readPodRecord,
      upsert: (pod, key) => {
        this.#pods.set(key, pod);
        onChange();
      },
      remove: (_pod, key) => {
        if (this.#pods.delete(key)) onChange();
      },
      clear: () => this.#pods.clear(),
      onListed: onChange,
    });
  }

  #followLeases(spaces: ReadonlySet<string>): void {
    const before = this.#leaseFeed;
    this.#stopping = Promise.all([this.#stopping, before?.stop()]).then(() => undefined);
    this.#spaces = spaces;
    this.#inventory = new Inventory();
    this.#leaseFeed = undefined;
    if (spaces.size === 0) return;
    const { context, onChange } = this.#options;
    // each watch has its own inventory, so that late events of an older watch do not change it
    let inventory = this.#inventory;
    this.#leaseFeed = new FilteredInformer<AddressLease, InventoryEntry>({
      context,
      resource: ADDRESS_LEASES,
      select: (lease) => (spaces.has(lease.spec.addressSpace) ? readInventoryEntry(lease) : undefined),
      upsert: (entry) => {
        inventory.add(entry);
        onChange();
      },
      remove: (entry) => {
        if (entry === undefined) return;
        inventory.delete(entry);
        onChange();
      },
      clear: () => {
        const isCurrent = this.#inventory === inventory;
        inventory = new Inventory();
        if (isCurrent) this.#inventory = inventory;
      },
      onListed: onChange,
    });
    this.#leaseFeed.start();
  }
}
