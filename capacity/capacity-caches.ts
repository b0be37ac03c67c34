import type { BlockRecord } from '../addressing/block/block.js';
import { ADDRESS_BLOCK_WATCH, createPoolDirectory } from '../addressing/directory/create-directory.js';
import type { PoolDirectory } from '../addressing/directory/directory.js';
import type { Pool } from '../addressing/pool/pool.js';
import type { AddressBlock } from '../api/address-block.js';
import type { AddressLease } from '../api/address-lease.js';
import { nadNamespaceOf } from '../api/address-pool.js';
import { type KubeObject, objectKey } from '../api/meta.js';
import type { Pod } from '../api/pod.js';
import { ADDRESS_POOL_WATCH } from '../cluster/watch-specs.js';
import { messageOf } from '../kube/errors.js';
import { forEachInSlices } from '../kube/run-in-slices.js';
import type { WatchSpec } from '../kube/informers/informers.js';
import type { Logger } from '../kube/log.js';
import { MAX_SILENCE_MS, Reflector } from '../kube/informers/reflector.js';
import type { Resource } from '../kube/resource.js';
import { ADDRESS_LEASES, PODS } from '../kube/resources.js';
import type { ProcessContext } from '../process/context.js';
import { NODE_RECORDS, type NodeRecord, type PublishingPool, isSameNodeState } from './node-record.js';
import { Inventory, type InventoryEntry, readInventoryEntry } from './inventory.js';
import { type PodRecord, readPodRecord, withFirstAttachment } from './pod-record.js';

const BY_POOL = 'pool';
const BLOCK_RECORDS: WatchSpec<AddressBlock, BlockRecord> = {
  ...ADDRESS_BLOCK_WATCH,
  indexes: { [BY_POOL]: ({ pool }) => [pool] },
};
/** The API server ends watches so often. Each end shows that nothing was missed until the watch began, even if no bookmark came. */
const WATCH_SECONDS = 60;
/** What is known of leases while a watch is silent. */
const NOTHING_FREE: Pick<Inventory, 'heldBy' | 'free'> = {
  heldBy: () => 0,
  free: () => ({ total: 0, byNode: new Map() }),
};
/** NADs decide which namespaces a pool serves, which is not needed here. */
const NO_NETWORKS = { cache: { list: () => [], get: () => undefined }, isServed: true, onChange: () => undefined };

interface CapacityCachesOptions {
  readonly context: ProcessContext;
  /** Whether blocks are watched. */
  readonly hasNodeBlocks: boolean;
  /** Called when nodes may have to show other values. */
  readonly onChange: () => void;
}

/** The caches of this process. It watches only leases in address spaces of published pools. */
export class CapacityCaches {
  readonly #options: CapacityCachesOptions;
  #pods = new Map<string, PodRecord>();
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
      const state = this.#directory.stateOf(name);
      if (state?.kind !== 'served' || !state.pool.publishesCapacity) return [];
      return [{ pool: state.pool, createdAt, isDerived: nadNamespaceOf(object) !== undefined }];
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

  /** Nothing is free while a watch is silent: others may have got it. */
  get inventory(): Pick<Inventory, 'heldBy' | 'free'> {
    const isCurrent = this.#podFeed.isCurrent && this.#leaseFeed?.isCurrent === true;
    return isCurrent ? this.#inventory : NOTHING_FREE;
  }

  blocksOf(pool: Pool): readonly BlockRecord[] {
    return this.#blocks?.cache.byIndex(BY_POOL, pool.name) ?? [];
  }

  #followPods(): FilteredInformer<Pod, PodRecord> {
    const { context, onChange } = this.#options;
    return new FilteredInformer<Pod, PodRecord>({
      context,
      resource: PODS,
      select: (pod) => readPodRecord(pod, context.clock.now()),
      upsert: (pod, key) => {
        this.#pods.set(key, withFirstAttachment(pod, this.#pods.get(key)));
        onChange();
      },
      remove: (_pod, key) => {
        if (this.#pods.delete(key)) onChange();
      },
      replace: async (listed, signal) => {
        const pods = new Map<string, PodRecord>();
        const add = ({ selected, key }: Selected<PodRecord>) =>
          void pods.set(key, withFirstAttachment(selected, this.#pods.get(key)));
        if (await forEachInSlices(listed, add, context.clock, signal)) this.#pods = pods;
      },
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
      replace: async (listed, signal) => {
        const next = new Inventory();
        const add = ({ selected }: Selected<InventoryEntry>) => next.add(selected);
        if (!(await forEachInSlices(listed, add, context.clock, signal))) return;
        if (this.#inventory === inventory) this.#inventory = next;
        inventory = next;
      },
      onListed: onChange,
    });
    this.#leaseFeed.start();
  }
}

interface FilteredInformerOptions<T extends KubeObject, P> {
  readonly context: Pick<ProcessContext, 'client' | 'clock' | 'random' | 'log' | 'metrics'>;
  readonly resource: Resource<T>;
  /** Returns what to store of an object; undefined to ignore it. */
  readonly select: (object: T) => P | undefined;
  readonly upsert: (selected: P, key: string) => void;
  readonly remove: (selected: P | undefined, key: string) => void;
  /** Replaces everything by the objects of a list, in slices. Until its end, what was known before counts. */
  readonly replace: (listed: readonly Selected<P>[], signal: AbortSignal) => Promise<void>;
  /** Called after the objects of a list. */
  readonly onListed: () => void;
}

interface Selected<P> {
  readonly key: string;
  readonly selected: P;
}

type SelectedObject<P> = Selected<P | undefined>;

/** Watches a kind most of whose objects are ignored. Ignored objects need no memory. */
class FilteredInformer<T extends KubeObject, P> {
  readonly #reflector: Reflector<T, SelectedObject<P>>;
  readonly #options: FilteredInformerOptions<T, P>;
  readonly #log: Logger;
  #hasSynced = false;

  constructor(options: FilteredInformerOptions<T, P>) {
    const { context, resource } = options;
    const { client, clock, random, log, metrics } = context;
    this.#options = options;
    this.#log = log.child({ resource: resource.plural });
    this.#reflector = new Reflector<T, SelectedObject<P>>({
      client,
      resource,
      transform: (object) => ({ key: objectKey(object), selected: this.#select(object) }),
      store: {
        replace: (projections, _versions, signal) => this.#replace(projections, signal),
        upsert: (projection) => this.#upsert(projection),
        remove: ({ key, selected }) => options.remove(selected, key),
      },
      watchSeconds: WATCH_SECONDS,
      clock,
      random,
      log,
      metrics: metrics.kube,
    });
  }

  /** Whether the watch has shown recently that nothing was missed. */
  get isCurrent(): boolean {
    return this.#options.context.clock.now() - this.#reflector.lastProgress <= MAX_SILENCE_MS;
  }

  /** Whether the first list is complete. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  start(): void {
    this.#reflector.start();
  }

  stop(): Promise<void> {
    return this.#reflector.stop();
  }

  async #replace(projections: readonly SelectedObject<P>[], signal: AbortSignal): Promise<void> {
    const { replace, onListed } = this.#options;
    const isSelected = (each: SelectedObject<P>): each is Selected<P> => each.selected !== undefined;
    await replace(projections.filter(isSelected), signal);
    if (signal.aborted) return;
    this.#hasSynced = true;
    onListed();
  }

  #upsert({ key, selected }: SelectedObject<P>): void {
    const { upsert: keep, remove } = this.#options;
    if (selected === undefined) remove(undefined, key);
    else keep(selected, key);
  }

  #select(object: T): P | undefined {
    try {
      return this.#options.select(object);
    } catch (error) {
      // an invalid object must not stop the others
      this.#log.error(
        { key: objectKey(object), err: error },
        `ignored an object that cannot be read: ${messageOf(error)}`,
      );
      return undefined;
    }
  }
}
