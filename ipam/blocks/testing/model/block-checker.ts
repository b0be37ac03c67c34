import { BlockRelease, ReleaseReason } from '../../../../api/address-block.js';
import { type Address, formatAddress } from '../../../../addressing/address/address.js';
import type { BlockRecord } from '../../../../addressing/block/block.js';
import { type Cidr, containsAddress, formatCidr, overlap, rangeOf } from '../../../../addressing/address/cidr.js';
import { type LeaseRecord, stateOf } from '../../../../addressing/lease/lease.js';
import { type Pool, addressesOf } from '../../../../addressing/pool/pool.js';
import type { Cache } from '../../../../kube/informers/cache.js';
import type { ModelNode, ModelPool } from './model-objects.js';

/** The sender of a write. */
export interface Writer {
  readonly kind: 'ipam' | 'agent' | 'admin';
  /** Unique for each start of a process. */
  readonly name: string;
  readonly node?: string;
  /** When the process started, in ms. */
  readonly startedAt: number;
  /** Whether the sender gave up the request, or ended, before it arrived. */
  readonly isAbandoned: boolean;
}

interface ServerState {
  readonly blocks: Cache<BlockRecord>;
  readonly leases: Cache<LeaseRecord>;
  readonly nodes: Cache<ModelNode>;
  readonly pools: Cache<ModelPool>;
  /** In ms. */
  readonly now: number;
}

/** An address that an agent has chosen and is about to lease. */
export interface PendingPick {
  readonly by: Writer;
  readonly address: Address;
}

type ReleaseState = BlockRecord['release'];

const RELEASE_STATES: ReadonlySet<string> = new Set(Object.values(BlockRelease));

/** The allowed transitions of the release state. */
const IPAM_TRANSITIONS: readonly (readonly [ReleaseState, ReleaseState])[] = [
  [undefined, BlockRelease.Marked],
  [BlockRelease.Marked, undefined],
  [BlockRelease.Ready, undefined],
  [BlockRelease.Refused, undefined],
  [BlockRelease.Ready, BlockRelease.Released],
  [BlockRelease.Marked, BlockRelease.Released],
];
const AGENT_TRANSITIONS: readonly (readonly [ReleaseState, ReleaseState])[] = [
  [BlockRelease.Marked, BlockRelease.Ready],
  [BlockRelease.Marked, BlockRelease.Refused],
];

/** Checks each write on the API server and each pick of an agent by independent rules. */
export class BlockChecker {
  readonly #truth: ServerState;
  readonly #excessDelayMs: number;
  /** Pending picks. */
  readonly #picks = new Set<PendingPick>();
  /** Names of leases that an abandoned request created. */
  readonly #abandonedLeases = new Set<string>();
  /** UIDs of blocks whose node did not exist at some time since their creation. */
  readonly #nodelessBlocks = new Set<string>();
  /** UIDs of blocks whose pool was deleted, or being deleted, at some time since their creation. */
  readonly #poollessBlocks = new Set<string>();
  /** All former specs of the pool, because a late reader may use any of them. */
  readonly #shapes = new Set<Pool>();
  /** How often each transition of the release state occurred, by family, to prove that the model tests it. */
  readonly transitions = new Map<string, number>();

  constructor(truth: ServerState, excessDelayMs: number) {
    this.#truth = truth;
    this.#excessDelayMs = excessDelayMs;
  }

  /** To be called after each event. */
  observe(): void {
    const { blocks, nodes, pools } = this.#truth;
    for (const { pool } of pools.list()) this.#shapes.add(pool);
    for (const { metadata, node, pool } of blocks.list()) {
      if (nodes.get(node) === undefined) this.#nodelessBlocks.add(metadata.uid);
      if (pools.get(pool)?.isEnding !== false) this.#poollessBlocks.add(metadata.uid);
    }
  }

  /** Called when an agent has chosen an address. {@link settled} must follow unless the agent ends. */
  picked(pick: PendingPick): void {
    const block = this.#blocksAt(pick.address).find(({ node }) => node === pick.by.node);
    const isGivenBack = block?.release === BlockRelease.Ready || block?.release === BlockRelease.Released;
    const hadNoNode = block !== undefined && this.#nodelessBlocks.has(block.metadata.uid);
    expectBlock(!isGivenBack || hadNoNode, `${pick.by.name} picks from a released block`, block);
    this.#picks.add(pick);
  }

  settled(pick: PendingPick): void {
    this.#picks.delete(pick);
  }

  /** Called when a process ends. Its pending requests may still arrive. */
  ended(name: string): void {
    for (const pick of this.#picks) if (pick.by.name === name) this.#picks.delete(pick);
  }

  leaseWritten(was: LeaseRecord | undefined, is: LeaseRecord | undefined, by: Writer): void {
    const name = (is ?? was)!.metadata.name;
    if (is === undefined || stateOf(is) !== 'held') this.#abandonedLeases.delete(name);
    else if (was === undefined && by.isAbandoned) this.#abandonedLeases.add(name);
    const isOther = was !== undefined && is !== undefined && was.owner?.uid !== is.owner?.uid;
    if (isOther && stateOf(was) === 'held') throw new Error(`${name} was leased twice`);
  }

  /** Checks the release state as text, before it is parsed. */
  releaseWritten(was: string | undefined, is: string | undefined, by: Writer): void {
    if (was === undefined || was === is || by.kind === 'admin') return;
    if (!RELEASE_STATES.has(was)) throw new Error(`${by.name} overwrote the unknown release state ${was}`);
  }

  blockWritten(was: BlockRecord | undefined, is: BlockRecord | undefined, by: Writer): void {
    this.observe();
    if (was === undefined) this.#checkCreation(is!);
    else if (is === undefined) this.#checkEnd(was, by);
    else this.#checkChange(was, is, by);
  }

  #checkCreation(is: BlockRecord): void {
    for (const other of this.#truth.blocks.list()) {
      const isApart = other.pool !== is.pool || !overlap(other.cidr, is.cidr);
      // allowed only if the block size changed, because the name locks slices of one size
      const isOtherSize = other.cidr.prefixLength !== is.cidr.prefixLength;
      expectBlock(isApart || isOtherSize, `assigned although ${other.metadata.name} is assigned to ${other.node}`, is);
    }
  }

  #checkEnd(was: BlockRecord, by: Writer): void {
    if (by.kind === 'admin') return;
    const isOver = was.release === BlockRelease.Released || this.#poollessBlocks.has(was.metadata.uid);
    expectBlock(by.kind === 'ipam' && isOver, 'deleted although it is not released', was);
    expectBlock(was.release !== 'unknown', 'deleted although its release state is unknown', was);
  }

  /** Checks the start of a deletion. The finalizer keeps the block while pods use it. */
  #checkDeletion(is: BlockRecord, by: Writer): void {
    const isOutgrown = [...this.#shapes].some((pool) => !hasSlice(pool, is.cidr));
    if (by.kind !== 'ipam' || is.release !== undefined || !isOutgrown) this.#checkEnd(is, by);
  }

  #checkChange(was: BlockRecord, is: BlockRecord, by: Writer): void {
    if (was.release === is.release) {
      if (is.metadata.deletionTimestamp !== was.metadata.deletionTimestamp) this.#checkDeletion(is, by);
      return;
    }
    // the node exists again and keeps the block
    if (is.release === undefined && this.#truth.nodes.get(is.node) !== undefined)
      this.#nodelessBlocks.delete(is.metadata.uid);
    if (by.kind === 'admin') return;
    const edges = by.kind === 'ipam' ? IPAM_TRANSITIONS : AGENT_TRANSITIONS;
    const edge = `${was.release} → ${is.release}`;
    const met = `IPv${is.cidr.family}: ${edge}`;
    this.transitions.set(met, (this.transitions.get(met) ?? 0) + 1);
    expectBlock(
      edges.some(([from, to]) => from === was.release && to === is.release),
      `${by.name} wrote ${edge}`,
      is,
    );
    if (is.release === BlockRelease.Marked) this.#checkMark(is, by);
    if (by.kind === 'agent') expectBlock(by.node === is.node, `${by.name} answered for another node`, is);
    if (is.release === BlockRelease.Ready) this.#checkAnswer(is);
    if (is.release === BlockRelease.Released) this.#checkReturn(was, is);
  }

  /** Delays are not stored, so they start with the process. */
  #checkMark(is: BlockRecord, { startedAt }: Writer): void {
    const isDue = this.#truth.now - startedAt >= this.#excessDelayMs;
    expectBlock(is.reason !== ReleaseReason.Excess || isDue, 'marked before the delay has ended', is);
  }

  /** After this answer the node must not pick from the block. */
  #checkAnswer(is: BlockRecord): void {
    const pick = [...this.#picks].find(({ by, address }) => by.node === is.node && containsAddress(is.cidr, address));
    if (pick !== undefined)
      throw new Error(`${is.metadata.name} is released, but ${formatAddress(pick.address)} is picked`);
    this.#expectUnused(is);
  }

  #checkReturn(was: BlockRecord, is: BlockRecord): void {
    const hadNoNode = this.#nodelessBlocks.has(is.metadata.uid);
    expectBlock(
      was.release === BlockRelease.Ready || hadNoNode,
      'reclaimed without an answer although its node exists',
      is,
    );
    if (!hadNoNode) this.#expectUnused(is);
  }

  #expectUnused(block: BlockRecord): void {
    const used = this.#truth.leases
      .list()
      .find((lease) => isLeaseInBlock(lease, block) && !this.#abandonedLeases.has(lease.metadata.name));
    expectBlock(used === undefined, `${used?.metadata.name} of its node is held`, block);
  }

  #blocksAt(address: Address): BlockRecord[] {
    return this.#truth.blocks.list().filter(({ cidr }) => containsAddress(cidr, address));
  }
}

export function isLeaseInBlock(lease: LeaseRecord, { cidr, node, pool }: BlockRecord): boolean {
  const isOfNode = lease.owner?.kind === 'Pod' && lease.node === node && lease.pool === pool;
  return isOfNode && stateOf(lease) === 'held' && containsAddress(cidr, lease.address);
}

/** Assumes that the subnets are larger than the slices. */
function hasSlice(pool: Pool, cidr: Cidr): boolean {
  const isOpen = addressesOf(pool, cidr.family, 'open').overlaps(rangeOf(cidr));
  return cidr.prefixLength === pool.blockSize[cidr.family] && isOpen;
}

function expectBlock(holds: boolean, complaint: string, block: BlockRecord | undefined): void {
  if (holds) return;
  const { cidr, node, release = 'nothing' } = block!;
  throw new Error(`${complaint}: block ${formatCidr(cidr)} of ${node}, release state ${release}`);
}
