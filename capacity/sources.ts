import type { AddressBlock } from '../api/address-block.js';
import type { AddressLease } from '../api/address-lease.js';
import { nadNamespaceOf } from '../api/address-pool.js';
import type { Pod } from '../api/pod.js';
import { ADDRESS_LEASES, PODS } from '../kube/resources.js';
import type { ProcessContext } from '../process/context.js';
import type { Watched } from '../kube/informers.js';
import { PoolDirectory } from '../ipam/directory/directory.js';
import { ADDRESS_POOL_WATCH } from '../cluster/watched.js';
import { ADDRESS_BLOCK_WATCH } from '../ipam/directory/block-watch.js';
import type { BlockRecord } from '../ipam/core/block.js';
import type { Pool } from '../ipam/core/pool.js';
import type { PublishingPool } from './chosen-pools.js';
import { Feed } from './feed.js';
import { NODE_RECORDS, type NodeRecord, sameNode } from './node-record.js';
import { type PodRecord, readPodRecord } from './pod-record.js';
import { Stock, type StockEntry, readEntry } from './stock.js';

const BY_POOL = 'pool';
const BLOCK_RECORDS: Watched<AddressBlock, BlockRecord> = {
  ...ADDRESS_BLOCK_WATCH,
  indexes: { [BY_POOL]: ({ pool }) => [pool] },
};

export interface SourcesOptions {
  readonly context: ProcessContext;
  /** Blocks are looked at. */
  readonly nodeBlocks: boolean;
  /** Something may have to be shown differently. */
  readonly changed: () => void;
}

/** All that shares are made of, as this process knows it. Leases are followed of those address spaces alone that somebody publishes. */
export class Sources {
  readonly #options: SourcesOptions;
  readonly #pods = new Map<string, PodRecord>();
  readonly #podFeed: Feed<Pod, PodRecord>;
  readonly #nodes;
  readonly #blocks;
  readonly #pools;
  readonly #directory: PoolDirectory;
  #stock = new Stock();
  #spaces: ReadonlySet<string> = new Set();
  #leaseFeed: Feed<AddressLease, StockEntry> | undefined;
  #stopping: Promise<void> = Promise.resolve();

  constructor(options: SourcesOptions) {
    const { context, nodeBlocks, changed } = options;
    const { informers } = context;
    this.#options = options;
    this.#nodes = informers.get(NODE_RECORDS);
    this.#nodes.onChange(({ type, object, before }) => {
      if (type !== 'changed' || before === undefined || !sameNode(before, object)) changed();
    });
    this.#blocks = nodeBlocks ? informers.get(BLOCK_RECORDS) : undefined;
    this.#blocks?.onChange(changed);
    const pools = informers.get(ADDRESS_POOL_WATCH);
    this.#pools = pools;
    // whom a pool serves is not asked here, so NADs need not be known
    this.#directory = new PoolDirectory({ pools: pools.cache, networks: { list: () => [], get: () => undefined } });
    this.#directory.follow({ pools, networks: { onChange: () => undefined } });
    this.#directory.onChange(changed);
    this.#podFeed = this.#followPods();
  }

  start(): void {
    this.#podFeed.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#podFeed.stop(), this.#leaseFeed?.stop(), this.#stopping]);
  }

  /** Pools that serve and say that they show what is free. */
  published(): readonly PublishingPool[] {
    return this.#pools.cache.list().flatMap((object) => {
      const { name, creationTimestamp: createdAt = '' } = object.metadata;
      const verdict = this.#directory.verdict(name);
      if (verdict?.kind !== 'served' || !verdict.pool.publishesCapacity) return [];
      return [{ pool: verdict.pool, createdAt, isDerived: nadNamespaceOf(object) !== undefined }];
    });
  }

  /**
   * Makes sure that the leases of the pools' address spaces are followed.
   * @returns false until all is known that is to be known of them
   */
  covers(pools: readonly Pool[]): boolean {
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

  get stock(): Stock {
    return this.#stock;
  }

  blocksOf(pool: Pool): readonly BlockRecord[] {
    return this.#blocks?.cache.byIndex(BY_POOL, pool.name) ?? [];
  }

  #followPods(): Feed<Pod, PodRecord> {
    const { context, changed } = this.#options;
    return new Feed<Pod, PodRecord>({
      context,
      resource: PODS,
      select: readPodRecord,
      keep: (pod, key) => {
        this.#pods.set(key, pod);
        changed();
      },
      drop: (_pod, key) => {
        if (this.#pods.delete(key)) changed();
      },
      clear: () => this.#pods.clear(),
      listed: changed,
    });
  }

  #followLeases(spaces: ReadonlySet<string>): void {
    const before = this.#leaseFeed;
    this.#stopping = Promise.all([this.#stopping, before?.stop()]).then(() => undefined);
    this.#spaces = spaces;
    this.#stock = new Stock();
    this.#leaseFeed = undefined;
    if (spaces.size === 0) return;
    const { context, changed } = this.#options;
    // its own: what an older feed still tells is of no use to it
    let stock = this.#stock;
    this.#leaseFeed = new Feed<AddressLease, StockEntry>({
      context,
      resource: ADDRESS_LEASES,
      select: (lease) => (spaces.has(lease.spec.addressSpace) ? readEntry(lease) : undefined),
      keep: (entry) => {
        stock.add(entry);
        changed();
      },
      drop: (entry) => {
        if (entry === undefined) return;
        stock.delete(entry);
        changed();
      },
      clear: () => {
        const isCurrent = this.#stock === stock;
        stock = new Stock();
        if (isCurrent) this.#stock = stock;
      },
      listed: changed,
    });
    this.#leaseFeed.start();
  }
}
