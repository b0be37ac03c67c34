import { type BlockAction, writeOf } from '../../ipam/blocks/action.js';
import { BlockBook } from '../../ipam/blocks/block-book.js';
import { ClaimShortages, NodeLeaseCounts } from '../../ipam/blocks/node-demand.js';
import { type BlockViews, observeBlocks } from '../../ipam/blocks/observe.js';
import type { BlockPolicy, PlanState } from '../../ipam/blocks/observed-pool.js';
import { planBlocks } from '../../ipam/blocks/plan.js';
import { PoolSlices } from '../../ipam/blocks/slice-occupancy.js';
import type { Address } from '../../addressing/address/address.js';
import type { BlockRecord } from '../../addressing/block/block.js';
import { type LeaseRecord, createLease, expireLease, releaseLease } from '../../addressing/lease/lease.js';
import { RangeSet } from '../../addressing/address/ranges.js';
import { LeaseBook } from '../../ipam/leases/lease-book.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import type { SimulatedEvent } from './api.js';
import type { Simulation } from './simulation.js';
import type { VirtualTime } from './virtual-time.js';

/** The flags' defaults. */
const POLICY: BlockPolicy = { minFree: 8, maxFree: 72, excessDelayMs: 180_000 };
/** Intervals between two reconciles of the pool, after one with and one without writes. They are longer than in reality. */
const LOOK_AGAIN_MS = 1_000;
const IDLE_MS = 5_000;

export interface SimulatedIpamDeps extends Simulation {
  /** Names of all nodes. */
  readonly nodes: ReadonlySet<string>;
  /** Lag of its watches in ms. */
  readonly lagMs: number;
  readonly lends: boolean;
  readonly cooldownMs: number;
}

/** The part of ipam for leases and blocks: it leases to claims, expires leases, and lends blocks. */
export class SimulatedIpam {
  readonly #deps: SimulatedIpamDeps;
  readonly book: LeaseBook;
  readonly blocks = new BlockBook();
  readonly slices: PoolSlices;
  readonly #views: BlockViews;
  #planned: PlanState = new Map();
  readonly #pressure = new ClaimShortages();
  readonly #leaseFeed: LaggingFeed<LeaseRecord>;
  readonly #blockFeed: LaggingFeed<BlockRecord>;
  readonly #claims: LeaseRecord[] = [];
  #writing = 0;
  #count = 0;

  constructor(deps: SimulatedIpamDeps) {
    const { pool, api, time, nodes, lagMs, lends } = deps;
    this.#deps = deps;
    this.book = new LeaseBook([pool]);
    this.#leaseFeed = new LaggingFeed(api.leases.news, time, lagMs);
    this.#blockFeed = new LaggingFeed(api.blocks.news, time, lagMs);
    this.book.attach(this.#leaseFeed, time);
    this.blocks.attach(this.#blockFeed);
    this.slices = new PoolSlices(this.book);
    this.#views = {
      pools: { get: (name) => adminPool(name, { cidr: '10.0.0.0/8' }) },
      directory: { pool: () => pool, stateOf: () => ({ kind: 'served', pool }) },
      usage: { of: () => undefined as never },
      nodes: { get: (name) => (nodes.has(name) ? { metadata: { name } } : undefined) },
      blocks: this.blocks,
      leaseCounts: new NodeLeaseCounts(this.book),
      slices: this.slices,
      shortages: this.#pressure,
    };
    if (!lends) return;
    this.book.preferUnlent((name) => this.blocks.lentOf(name));
    time.after(LOOK_AGAIN_MS, () => this.#reconcileForever());
  }

  /** Creates a VM, whose claim gets an address. */
  claim(): void {
    const { pool, api, tally } = this.#deps;
    const address = this.#pick();
    if (address === undefined) return;
    this.book.markPending(pool.addressSpace, address);
    const name = `vm-${++this.#count}`;
    const owner = { kind: 'IPAMClaim', namespace: 'vms', name, uid: name, workloadUID: name } as const;
    const write = createLease({ address, addressSpace: pool.addressSpace, pool: pool.name, owner });
    tally().claims++;
    const done = (lease: LeaseRecord | undefined) => this.#claims.push(lease!);
    const lost = () => {
      tally().claimConflicts++;
      this.claim();
    };
    api.writeLease(write, done, lost);
  }

  endClaim(): void {
    const { api, time, random } = this.#deps;
    const [lease] = this.#claims.splice(Math.floor(random() * this.#claims.length), 1);
    if (lease === undefined) return;
    api.writeLease(releaseLease(lease, time.now()), (released) => this.expireLater(released!), ignored);
  }

  /** Deletes a released lease after its cool-down. */
  expireLater(released: LeaseRecord): void {
    const { api, time, random, tally, cooldownMs } = this.#deps;
    time.after(cooldownMs + random() * 1_000, () => {
      tally().frees++;
      api.writeLease(expireLease(released), ignored, ignored);
    });
  }

  #pick(): Address | undefined {
    const { pool, time } = this.#deps;
    this.#leaseFeed.read();
    this.#blockFeed.read();
    const address = this.book.view(pool).space.next(pool.name, 4);
    if (address !== undefined && this.blocks.lentOf(pool.name)[4].has(address.value)) {
      this.#pressure.noteShortage(pool.name, 4, time.now());
    }
    return address;
  }

  #reconcileForever(): void {
    const actions = this.#writing > 0 ? 1 : this.#reconcile();
    this.#deps.time.after(actions > 0 ? LOOK_AGAIN_MS : IDLE_MS, () => this.#reconcileForever());
  }

  /** @returns the number of writes */
  #reconcile(): number {
    const { pool, time } = this.#deps;
    this.#leaseFeed.read();
    this.#blockFeed.read();
    const observed = observeBlocks(pool.name, this.#views, { 4: RangeSet.EMPTY, 6: RangeSet.EMPTY });
    const terms = { policy: POLICY, now: time.now() };
    const { actions, state } = planBlocks(observed, this.#planned, terms);
    this.#planned = state;
    for (const action of actions) this.#apply(action);
    return actions.length;
  }

  #apply(action: BlockAction): void {
    const { api, tally } = this.#deps;
    this.#writing++;
    tally().blockWrites++;
    const answered = () => {
      this.#writing--;
    };
    api.writeBlock(writeOf(action), answered, answered);
  }
}

interface Named {
  readonly metadata: { readonly name: string };
}

/** An informer with a lagging watch. */
class LaggingFeed<R extends Named> {
  readonly hasSynced = true;
  readonly #news: readonly SimulatedEvent<R>[];
  readonly #time: VirtualTime;
  readonly #lagMs: number;
  readonly #handlers: ((change: ObjectChange<R>) => void)[] = [];
  #seen = 0;

  constructor(news: readonly SimulatedEvent<R>[], time: VirtualTime, lagMs: number) {
    this.#news = news;
    this.#time = time;
    this.#lagMs = lagMs;
  }

  onChange(handler: (change: ObjectChange<R>) => void): void {
    this.#handlers.push(handler);
  }

  read(): void {
    const until = this.#time.now() - this.#lagMs;
    for (let next = this.#news[this.#seen]; next !== undefined && next.at <= until; next = this.#news[++this.#seen]) {
      const change = { type: next.isGone ? 'removed' : 'changed', object: next.record } as const;
      for (const handler of this.#handlers) handler(change);
    }
  }
}

function ignored(): void {
  // another writer was faster
}
