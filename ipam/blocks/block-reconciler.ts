import type { AddressPool, PoolBlocks } from '../../api/address-pool.js';
import type { Informer } from '../../kube/informers/informer.js';
import type { Sync } from '../../kube/controller-loop.js';
import type { IpamConfig } from '../../process/config/config.js';
import type { ProcessContext } from '../../process/context.js';
import type { PersistentIPsGate } from '../../cluster/persistent-ips-gate.js';
import { NODE_WATCH } from '../../cluster/watch-specs.js';
import { ADDRESS_BLOCK_WATCH } from '../../addressing/directory/create-directory.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { PoolUsage } from '../pools/usage.js';
import type { Family } from '../../addressing/address/address.js';
import type { BlockRecord } from '../../addressing/block/block.js';
import { toSafeNumber } from '../../addressing/address/ranges.js';
import { formatCidr } from '../../addressing/address/cidr.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { BlockBook } from './block-book.js';
import { ClaimShortages, NodeLeaseCounts } from './node-demand.js';
import { createBlockMetrics } from './metrics.js';
import { PoolSlices } from './slice-occupancy.js';
import { createBlockSync } from './sync.js';
import { watchBlockSources } from './triggers.js';

interface BlockReconcilerDependencies {
  context: Pick<ProcessContext, 'client' | 'informers' | 'clock' | 'log' | 'metrics'>;
  config: Pick<IpamConfig, 'blockMinFree' | 'blockMaxFree' | 'excessReleaseDelayMs'>;
  views: { watched: { pools: Informer<AddressPool> }; book: LeaseBook; directory: PoolDirectory; usage: PoolUsage };
  gate: PersistentIPsGate;
}

/** Reconciles the blocks of all pools. It exists only if the gate NodeBlocks is enabled. */
export class BlockReconciler {
  readonly #dependencies: BlockReconcilerDependencies;
  readonly #book = new BlockBook();
  readonly #shortages = new ClaimShortages();
  readonly #slices: PoolSlices;
  readonly #leaseCounts: NodeLeaseCounts;
  readonly #nodes;
  readonly #metrics;

  constructor(dependencies: BlockReconcilerDependencies) {
    this.#dependencies = dependencies;
    const { context, views } = dependencies;
    this.#metrics = createBlockMetrics(context.metrics);
    this.#book.onChange((change) => this.#metrics.changed(change));
    this.#book.attach(context.informers.get(ADDRESS_BLOCK_WATCH));
    this.#nodes = context.informers.get(NODE_WATCH);
    this.#slices = new PoolSlices(views.book);
    this.#leaseCounts = new NodeLeaseCounts(views.book);
    views.book.preferUnlent((pool) => this.#book.lentOf(pool));
  }

  /** @param add called with the names of pools whose blocks need a sync */
  watch(add: (pools: readonly string[]) => void): void {
    const { watched, book, directory } = this.#dependencies.views;
    const sources = {
      ...{ pools: watched.pools, nodes: this.#nodes, book, blocks: this.#book, directory },
      ...{ leaseCounts: this.#leaseCounts, shortages: this.#shortages, slices: this.#slices },
    };
    watchBlockSources(sources, add);
  }

  /** Calls the handler with pools whose {@link statusOf} or {@link countDelayingDeletion} changed, but not for each step of a handshake. */
  onChange(handler: (pools: readonly string[]) => void): void {
    this.#book.onChange(({ pool, before, after }) => {
      const isThereAsBefore = before !== undefined && after !== undefined;
      if (!isThereAsBefore || delaysDeletion(before) !== delaysDeletion(after)) handler([pool]);
    });
  }

  /** The names of all pools, and of deleted pools that still have blocks. */
  allPools(): string[] {
    const pools = this.#dependencies.views.watched.pools.cache.list();
    return [...new Set([...pools.map(({ metadata }) => metadata.name), ...this.#book.pools()])];
  }

  /** Records that a claim found no free address outside of blocks. */
  noteShortage(pool: string, family: Family): void {
    this.#shortages.noteShortage(pool, family, this.#dependencies.context.clock.now());
  }

  /** Returns the sync for one term of leadership. */
  createSync(): Sync {
    const { context, config, views, gate } = this.#dependencies;
    const { watched, directory, usage } = views;
    const { blockMinFree: minFree, blockMaxFree: maxFree, excessReleaseDelayMs: excessDelayMs } = config;
    return createBlockSync({
      ...{ ...context, directory, usage, gate, pools: watched.pools.cache, nodes: this.#nodes.cache },
      ...{ leaseCounts: this.#leaseCounts, slices: this.#slices, shortages: this.#shortages, blocks: this.#book },
      policy: { minFree, maxFree, excessDelayMs },
      metrics: this.#metrics,
    });
  }

  /** The part of a pool's status that describes its blocks. */
  statusOf(pool: Pool): PoolBlocks {
    const use = this.#slices.of(pool);
    const current = this.#currentOf(pool);
    return {
      total: toSafeNumber(use.total),
      full: use.full,
      lent: this.#book.countOf(pool.name),
      ...(current !== undefined && { current }),
    };
  }

  /** The number of blocks that must be deleted before the pool, once none of its addresses is leased. */
  countDelayingDeletion(pool: string): number {
    if (!this.#dependencies.gate.isOpen()) return 0;
    return this.#book.ofPool(pool).filter(delaysDeletion).length;
  }

  /** The slice from which the next claim gets an address, of the first family that has one. */
  #currentOf(pool: Pool): string | undefined {
    const { space } = this.#dependencies.views.book.view(pool);
    for (const family of pool.families) {
      const next = space.peek(pool.name, family);
      const slice = next && this.#slices.of(pool).slices[family].sliceOf(next.value);
      if (slice !== undefined) return formatCidr(slice);
    }
    return undefined;
  }
}

/** A block with a release state of another version does not delay: it is unknown when it is deleted. */
function delaysDeletion({ release }: BlockRecord): boolean {
  return release !== 'unknown';
}
