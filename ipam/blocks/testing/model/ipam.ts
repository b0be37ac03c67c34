import type { LeaseWrite } from '../../../../api/address-lease.js';
import { BlockRelease, ReleaseReason } from '../../../../api/address-block.js';
import { type BlockAction, writeOf } from '../../action.js';
import { planBlocks } from '../../plan.js';
import type { PlanState } from '../../observed-pool.js';
import {
  type LeaseRecord,
  createLease,
  expireLease,
  mayExpire,
  releaseLease,
  stateOf,
} from '../../../../addressing/lease/lease.js';
import type { Address, Family } from '../../../../addressing/address/address.js';
import { type Pool, addressesOf } from '../../../../addressing/pool/pool.js';
import { type BlockRecord, markBlock } from '../../../../addressing/block/block.js';
import { type Cidr, formatCidr, overlap, rangesOf } from '../../../../addressing/address/cidr.js';
import { LaggingInformer } from '../../../../kube/testing/lagging-informer.js';
import { type BlockCluster, POLICY, WATCHED } from './cluster.js';
import { type Writer, isLeaseInBlock } from './block-checker.js';
import { observePool, leasedRanges } from './observe.js';

const TIMES = { cooldownMs: 60_000, stickyMs: 0 };

export const CACHES = ['blocks', 'leases', 'nodes', 'pools'] as const;

/** One ipam process that assumes to be the leader: the real plan on a model of its caches. */
export class ModelIpam {
  readonly #cluster: BlockCluster;
  readonly #writer: Writer;
  #state: PlanState = new Map();
  readonly #caches;
  readonly #claimShortageAt: Partial<Record<Family, number>> = {};
  /** The number of writes of its last sync without an answer. */
  #waiting = 0;

  constructor(cluster: BlockCluster, name: string) {
    this.#cluster = cluster;
    this.#writer = { kind: 'ipam', name, startedAt: cluster.now, isAbandoned: false };
    this.#caches = {
      blocks: new LaggingInformer(cluster.tracker, WATCHED.blocks),
      leases: new LaggingInformer(cluster.tracker, WATCHED.leases),
      nodes: new LaggingInformer(cluster.tracker, WATCHED.nodes),
      pools: new LaggingInformer(cluster.tracker, WATCHED.pools),
    };
  }

  get name(): string {
    return this.#writer.name;
  }

  read(feed: (typeof CACHES)[number], count?: number): void {
    this.#caches[feed].deliver(count);
  }

  relist(feed: (typeof CACHES)[number]): void {
    this.#caches[feed].list();
  }

  /** Observes, plans and writes. The next sync waits for all answers. */
  sync(): void {
    if (this.#waiting > 0 || !this.#hasSynced) return;
    const { blocks, leases, nodes, pools } = this.#caches;
    const known = {
      pool: pools.cache.get('blue'),
      blocks: blocks.cache.list(),
      leases: leases.cache.list(),
      nodes: nodes.cache.list(),
      claimShortageAt: this.#claimShortageAt,
    };
    const terms = { policy: POLICY, now: this.#cluster.now };
    const { actions, state } = planBlocks(observePool(known), this.#state, terms);
    this.#state = state;
    for (const action of actions) {
      if (action.kind === 'reclaim') expectUnused(action.block, known.leases);
      if (action.kind === 'lend') {
        expectNoOverlap(action.slice, known.blocks);
        this.#expectNoShortage(action.slice);
      }
      this.#apply(action);
    }
  }

  /** Marks a block as if no pod used it. */
  requestRelease(pick: number): void {
    const own = this.#caches.blocks.cache.list().filter(({ release }) => release === undefined);
    const block = own[pick % Math.max(1, own.length)];
    if (block !== undefined)
      this.#cluster.sendBlock(this.#writer, markBlock(block, ReleaseReason.Pressure), () => undefined);
  }

  /** Allocates an address of each family to a claim: outside of blocks, else any. */
  claim(uid: string, pick: number): void {
    const pool = this.#caches.pools.cache.get('blue')?.pool;
    if (pool === undefined || !this.#hasSynced) return;
    const owner = { kind: 'IPAMClaim', namespace: 'vms', name: uid, uid } as const;
    for (const family of pool.families) {
      const address = this.#addressFor(family, pool, pick);
      if (address === undefined) continue;
      this.#write(createLease({ address, addressSpace: pool.addressSpace, pool: pool.name, owner }));
    }
  }
  /** Releases leases of deleted owners after a live read, and deletes leases that have cooled down. */
  collect(isAlive: (uid: string) => boolean): void {
    for (const lease of this.#caches.leases.cache.list()) {
      const write = this.#endOf(lease, isAlive);
      if (write !== undefined) this.#write(write);
    }
  }

  get #hasSynced(): boolean {
    return Object.values(this.#caches).every(({ hasSynced }) => hasSynced);
  }

  #addressFor(family: Family, pool: Pool, pick: number): Address | undefined {
    const lent = this.#caches.blocks.cache.list().map(({ cidr }) => cidr);
    const free = addressesOf(pool, family, 'open').subtract(leasedRanges(this.#caches.leases.cache.list(), family));
    const unlent = free.subtract(rangesOf(lent, family));
    if (unlent.isEmpty) this.#claimShortageAt[family] = this.#cluster.now;
    const [range] = unlent.isEmpty ? free.ranges.slice(pick % Math.max(1, free.ranges.length)) : unlent.ranges;
    return range && { family, value: range.first };
  }

  /** Fails if a slice is assigned during a shortage of claims. */
  #expectNoShortage(slice: Cidr): void {
    const since = this.#cluster.now - (this.#claimShortageAt[slice.family] ?? Number.NEGATIVE_INFINITY);
    if (since >= POLICY.excessDelayMs) return;
    throw new Error(`${formatCidr(slice)} is to be assigned, but a claim found no free address ${since} ms ago`);
  }

  #apply(action: BlockAction): void {
    this.#waiting++;
    const answered = () => {
      this.#waiting--;
    };
    const isOver = this.#proofOf(action);
    if (isOver === undefined) {
      this.#cluster.sendBlock(this.#writer, writeOf(action), answered);
      return;
    }
    this.#cluster.sendRead(this.#writer, isOver, (found) => {
      if (found === 'unknown' || !found.value) answered();
      else this.#cluster.sendBlock(this.#writer, writeOf(action), answered);
    });
  }

  /** The live read that must confirm a write without an answer of the node, because caches of kinds lag differently. */
  #proofOf(action: BlockAction): (() => boolean) | undefined {
    const { nodes, pools } = this.#cluster;
    if (action.kind === 'reclaim' && action.isNodeGone) return () => nodes.get(action.block.node) === undefined;
    if (action.kind !== 'delete' && action.kind !== 'remove-finalizer') return undefined;
    const isGivenBack = action.block.release === BlockRelease.Released;
    return !isGivenBack ? () => pools.get(action.block.pool)?.isEnding !== false : undefined;
  }

  #endOf(lease: LeaseRecord, isAlive: (uid: string) => boolean): LeaseWrite | undefined {
    const { now } = this.#cluster;
    if (mayExpire(lease, TIMES, now)) return expireLease(lease);
    const isLeaked = stateOf(lease) === 'held' && !isAlive(lease.owner?.uid ?? '');
    return isLeaked ? releaseLease(lease, now) : undefined;
  }

  #write(write: LeaseWrite): void {
    this.#cluster.sendLease(this.#writer, write, () => undefined);
  }
}

/** Fails if the caches show a lease in the block, even if the answer is older. */
function expectUnused(block: BlockRecord, leases: readonly LeaseRecord[]): void {
  const used = leases.find((lease) => isLeaseInBlock(lease, block));
  if (used === undefined) return;
  throw new Error(`${block.metadata.name} is to be reclaimed, but ${used.metadata.name} of its node is cached`);
}

/** Fails if the slice overlaps a block, because the name of a block locks only its own slice. */
function expectNoOverlap(slice: Cidr, blocks: readonly BlockRecord[]): void {
  const other = blocks.find(({ cidr }) => overlap(cidr, slice));
  if (other !== undefined)
    throw new Error(`${formatCidr(slice)} is to be assigned, but ${other.metadata.name} is known`);
}
