import { BlockRelease } from '../../../../api/address-block.js';
import { BlockCandidates, type PickOutcome } from '../../../../cni/agent/blocks/block-candidates.js';
import { type AnswerOutcome, LentBlocks } from '../../../../cni/agent/blocks/lent-blocks.js';
import { ANSWER_INTERVAL_MS } from '../../../../cni/agent/blocks/node-blocks.js';
import { AddressSpace } from '../../../../addressing/allocator/address-space.js';
import type { Address, Family } from '../../../../addressing/address/address.js';
import { type BlockRecord } from '../../../../addressing/block/block.js';
import { containsAddress } from '../../../../addressing/address/cidr.js';
import { leaseName } from '../../../../addressing/lease/lease-name.js';
import { type LeaseRecord, createLease, releaseLease, stateOf } from '../../../../addressing/lease/lease.js';
import type { Pool } from '../../../../addressing/pool/pool.js';
import { isNewer } from '../../../../api/meta.js';
import type { AddressBlock } from '../../../../api/address-block.js';
import type { AddressLease } from '../../../../api/address-lease.js';
import { LaggingInformer } from '../../../../kube/testing/lagging-informer.js';
import { type BlockCluster, WATCHED, type WriteOutcome } from './cluster.js';
import type { ModelPool } from './model-objects.js';
import type { PendingPick, Writer } from './block-checker.js';

/** The number of addresses that an ADD tries. */
const MAX_ATTEMPTS = 3;

export interface ModelPod {
  readonly uid: string;
  readonly node: string;
  isAlive: boolean;
  /** Whether an ADD or DEL is pending. */
  isBusy: boolean;
}

export const WATCHES = ['blocks', 'leases', 'pools'] as const;

/** One process of a node's agent: the real core of its blocks, and a model of the writes of its other parts. */
export class ModelBlockAgent {
  readonly lent = new LentBlocks(ANSWER_INTERVAL_MS);
  readonly watches: Readonly<
    Record<(typeof WATCHES)[number], Pick<LaggingInformer<ModelPool>, 'deliver' | 'list' | 'hasSynced'>>
  >;
  readonly #candidates: BlockCandidates;
  readonly #cluster: BlockCluster;
  readonly #writer: Writer;
  readonly #random: () => number;
  /** The leases of this node in any state, by name. Own writes are stored before the watch delivers them. */
  readonly #leases = new Map<string, LeaseRecord>();
  /** Names of leases whose creation has an unknown outcome. */
  readonly #unknownWrites = new Map<string, Address>();
  readonly #pools: LaggingInformer<ModelPool>;
  readonly #blocks: LaggingInformer<AddressBlock, BlockRecord>;
  readonly #leaseWatch: LaggingInformer<AddressLease, LeaseRecord>;

  constructor(cluster: BlockCluster, node: string, { life, random }: { life: number; random: () => number }) {
    this.#cluster = cluster;
    this.#random = random;
    this.#candidates = new BlockCandidates(this.lent, { clock: { now: () => cluster.now }, random });
    this.#writer = { kind: 'agent', name: `agent ${node}/${life}`, node, startedAt: cluster.now, isAbandoned: false };
    const fieldSelector = `spec.node=${node}`;
    this.#blocks = new LaggingInformer(cluster.tracker, { ...WATCHED.blocks, fieldSelector });
    this.#blocks.onChange((change) => this.lent.observe(change));
    this.#leaseWatch = new LaggingInformer(cluster.tracker, { ...WATCHED.leases, fieldSelector });
    this.#leaseWatch.onChange(({ type, object }) => {
      if (type === 'removed') this.#gone(object);
      else this.#learned(object);
    });
    this.#pools = new LaggingInformer(cluster.tracker, WATCHED.pools);
    this.watches = { blocks: this.#blocks, leases: this.#leaseWatch, pools: this.#pools };
  }

  get name(): string {
    return this.#writer.name;
  }

  read(watch: (typeof WATCHES)[number], count?: number): void {
    this.watches[watch].deliver(count);
    if (watch === 'leases') this.lent.setLeasesKnown();
  }

  add(pod: ModelPod): void {
    const held = this.#heldBy(pod).map(({ address }) => address.family);
    const missing = this.#pool?.families.filter((family) => !held.includes(family)) ?? [];
    if (pod.isBusy || !pod.isAlive || !this.#isReady || missing.length === 0) return;
    pod.isBusy = true;
    this.#try(pod, missing, MAX_ATTEMPTS);
  }

  del(pod: ModelPod): void {
    const held = this.#heldBy(pod);
    if (pod.isBusy) return;
    const open = new Set(held);
    pod.isBusy = open.size > 0;
    for (const lease of held) {
      this.#cluster.sendLease(this.#writer, releaseLease(lease, this.#cluster.now), (_outcome, released) => {
        open.delete(lease);
        pod.isBusy = open.size > 0;
        if (released !== undefined) this.#learned(released);
      });
    }
  }

  /** Answers the release requests that are due. */
  answerReleases(): void {
    const { now } = this.#cluster;
    for (const block of this.lent.answersDue(now)) {
      const write = this.lent.answer(block, now);
      if (write === undefined) continue;
      this.#cluster.sendBlock(this.#writer, write, (outcome) => {
        this.lent.answered(block, ANSWERED[outcome], this.#cluster.now);
      });
    }
  }

  /** Reads the result of a write without an answer. */
  resolveUnknownWrite(pick: number): void {
    const unknownWrites = [...this.#unknownWrites];
    const [name, address] = unknownWrites[pick % Math.max(1, unknownWrites.length)] ?? [];
    if (name === undefined || address === undefined) return;
    this.#cluster.sendRead(
      this.#writer,
      () => this.#cluster.leases.get(name),
      (found) => {
        if (found === 'unknown') return;
        if (found.value !== undefined) this.#learned(found.value);
        this.#unknownWrites.delete(name);
        this.lent.removeUse(`doubt ${name}`);
      },
    );
  }

  /** Reads own writes live that the watch does not show, because they may have been deleted while no watch ran. */
  sweep(): void {
    for (const [name, known] of this.#leases) {
      if (this.#leaseWatch.cache.get(name) !== undefined) continue;
      const read = () => this.#cluster.leases.get(name);
      this.#cluster.sendRead(this.#writer, read, (found) => {
        if (found !== 'unknown' && found.value === undefined && this.#leases.get(name) === known) this.#gone(known);
      });
    }
  }

  get #isReady(): boolean {
    return Object.values(this.watches).every(({ hasSynced }) => hasSynced);
  }

  get #pool(): Pool | undefined {
    return this.#pools.cache.get('blue')?.pool;
  }

  /** Leases an address of each family, one after the other. The pod keeps addresses that it already has. */
  #try(pod: ModelPod, [family, ...others]: readonly Family[], attempts: number): void {
    const address = attempts === 0 || family === undefined ? undefined : this.#choose(family);
    const pool = this.#pool;
    if (pool === undefined || family === undefined || address === undefined) {
      pod.isBusy = false;
      return;
    }
    this.#expectUsable(address);
    const pick: PendingPick = { by: this.#writer, address };
    this.#cluster.checker.picked(pick);
    const { uid, node } = pod;
    const owner = { kind: 'Pod', namespace: 'apps', name: uid, uid } as const;
    const request = { address, addressSpace: pool.addressSpace, pool: pool.name, owner, node, containerID: uid };
    this.#cluster.sendLease(this.#writer, createLease(request), (outcome, lease) => {
      this.#cluster.checker.settled(pick);
      if (lease !== undefined) this.#learned(lease);
      if (outcome === 'unknown') this.#noteUnknownWrite(pool, address);
      this.#candidates.settle(pool, address, PICKED[outcome]);
      if (outcome === 'refused') this.#try(pod, [family, ...others], attempts - 1);
      else this.#try(pod, outcome === 'done' ? others : [], MAX_ATTEMPTS);
    });
  }

  /** Chooses an address of the node's blocks, else any address that looks free and is not in a block that the node released. */
  #choose(family: Family): Address | undefined {
    const pool = this.#pool;
    if (pool === undefined) return undefined;
    const own = this.#candidates.pick(pool, family);
    if (own !== undefined) return own;
    const elsewhere = this.#candidates.withoutWithheld(pool);
    const space = new AddressSpace();
    space.setPool(elsewhere);
    const address = space.random(elsewhere.name, family, this.#random);
    if (address === undefined || this.#candidates.isKnown(pool, address)) return undefined;
    return this.#candidates.try(pool, address) ? address : undefined;
  }

  /** Fails if the address is in a block that is being released, according to the watch. */
  #expectUsable(address: Address): void {
    const block = this.#blocks.cache.list().find(({ cidr }) => containsAddress(cidr, address));
    const isOpen = block?.release === undefined || block.release === BlockRelease.Refused;
    if (block === undefined || (isOpen && block.metadata.deletionTimestamp === undefined)) return;
    throw new Error(`${this.name} picks from ${block.metadata.name}, release state ${block.release ?? 'deleted'}`);
  }

  #noteUnknownWrite(pool: Pool, address: Address): void {
    const name = leaseName(pool.addressSpace, address);
    this.#unknownWrites.set(name, address);
    this.lent.addUse(`doubt ${name}`, { pool: pool.name, address });
  }

  #heldBy({ uid }: ModelPod): LeaseRecord[] {
    return [...this.#leases.values()].filter((lease) => lease.owner?.uid === uid && stateOf(lease) === 'held');
  }

  #learned(lease: LeaseRecord): void {
    const { name, resourceVersion } = lease.metadata;
    const known = this.#leases.get(name);
    if (known !== undefined && !isNewer(resourceVersion, known.metadata.resourceVersion)) return;
    if (lease.node !== this.#writer.node) {
      this.#gone(lease);
      return;
    }
    this.#leases.set(name, lease);
    this.#candidates.addLease(lease.addressSpace, lease.address);
    const isHeld = stateOf(lease) === 'held' && lease.owner?.kind === 'Pod';
    if (isHeld) this.lent.addUse(name, { pool: lease.pool, address: lease.address });
    else this.lent.removeUse(name);
  }

  #gone({ metadata: { name, resourceVersion }, addressSpace, address }: LeaseRecord): void {
    const known = this.#leases.get(name);
    // a newer write stays
    if (known === undefined || isNewer(known.metadata.resourceVersion, resourceVersion)) return;
    this.#leases.delete(name);
    this.lent.removeUse(name);
    this.#candidates.removeLease(addressSpace, address);
  }
}

const ANSWERED: Readonly<Record<WriteOutcome, AnswerOutcome>> = { done: 'done', refused: 'lost', unknown: 'unknown' };
const PICKED: Readonly<Record<WriteOutcome, PickOutcome>> = { done: 'ours', refused: 'lost', unknown: 'failed' };
