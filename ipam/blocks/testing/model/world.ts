import type { Family } from '../../../../addressing/address/address.js';
import { type BlockRecord, deleteBlock } from '../../../../addressing/block/block.js';
import type { LeaseRecord } from '../../../../addressing/lease/lease.js';
import { ModelBlockAgent, type ModelPod, WATCHES } from './agent.js';
import { BlockCluster, type RequestFate, NODES, blockSizeOf } from './cluster.js';
import { CACHES, ModelIpam } from './ipam.js';
import { type Writer, isLeaseInBlock } from './block-checker.js';

const ADMIN: Writer = { kind: 'admin', name: 'admin', startedAt: 0, isAbandoned: false };
const ROUND_MS = 20_000;
/** After this many rounds without faults no block is being released: two delays, and the handshakes in between. */
const SETTLE_ROUNDS = 40;
/** A release state of a newer version. */
export const UNKNOWN_RELEASE = 'lent-on-trial';

/** Two ipam processes, one of which has lost its leadership unknowingly, agents, pods, claims and an administrator on one API server. */
export class BlockWorld {
  readonly cluster: BlockCluster;
  readonly ipams: ModelIpam[];
  readonly agents: ModelBlockAgent[];
  readonly #pods: ModelPod[] = [];
  /** UIDs. */
  readonly #claims = new Set<string>();
  #count = 0;
  #draws = 0;

  /** @param families of the pool */
  constructor(families: readonly Family[]) {
    this.cluster = new BlockCluster(families);
    this.ipams = [this.#startIpam(), this.#startIpam()];
    this.agents = NODES.map((_, node) => this.#startAgent(node));
    this.runAll();
  }

  /** All processes read all changes and act on them, except agents of deleted nodes. */
  runAll(): void {
    for (const [node, agent] of this.agents.entries()) {
      if (this.cluster.nodes.get(NODES[node]!) === undefined) continue;
      for (const watch of WATCHES) agent.read(watch);
      agent.resolveUnknownWrite(0);
      agent.sweep();
      agent.answerReleases();
    }
    const [leader] = this.ipams;
    for (const feed of CACHES) leader!.read(feed);
    this.collect(0);
    leader!.sync();
    while (!this.cluster.isIdle) this.cluster.serve(0, 'answered');
  }

  startPod(node: number): void {
    const pod = { uid: `pod-${++this.#count}`, node: NODES[node]!, isAlive: true, isBusy: false };
    this.#pods.push(pod);
    this.agents[node]!.add(pod);
  }

  /** The runtime repeats an ADD. */
  add(pick: number): void {
    const pod = choose(this.#living, pick);
    if (pod !== undefined) this.#agentOf(pod).add(pod);
  }

  /** Ends a pod. @param isToldOf whether the runtime sends a DEL; else the collector finds the lease later */
  endPod(pick: number, isToldOf: boolean): void {
    const pod = choose(
      this.#living.filter(({ isBusy }) => !isBusy),
      pick,
    );
    if (pod === undefined) return;
    pod.isAlive = false;
    if (isToldOf) this.#agentOf(pod).del(pod);
  }

  claim(process: number, pick: number): void {
    const uid = `claim-${++this.#count}`;
    this.#claims.add(uid);
    this.ipams[process]!.claim(uid, pick);
  }

  endClaim(pick: number): void {
    const uid = choose([...this.#claims], pick);
    if (uid !== undefined) this.#claims.delete(uid);
  }

  collect(process: number): void {
    const living = new Set(this.#living.map(({ uid }) => uid));
    this.ipams[process]!.collect((uid) => living.has(uid) || this.#claims.has(uid));
  }

  crashIpam(process: number, fate: Parameters<BlockCluster['crash']>[1]): void {
    this.cluster.crash(this.ipams[process]!.name, fate);
    this.ipams[process] = this.#startIpam();
  }

  crashAgent(node: number, fate: Parameters<BlockCluster['crash']>[1]): void {
    const { name } = this.agents[node]!;
    this.cluster.crash(name, fate);
    this.cluster.checker.ended(name);
    for (const pod of this.#pods) if (pod.node === NODES[node]) pod.isBusy = false;
    this.agents[node] = this.#startAgent(node);
  }

  deleteBlock(pick: number): void {
    const block = this.#block(pick);
    if (block !== undefined) this.cluster.writeBlock(ADMIN, deleteBlock(block));
  }

  /** A process of another version writes an unknown release state, or clears it. */
  setRelease(pick: number, word: string | null): void {
    const block = this.#block(pick);
    if (block === undefined || (word === null) !== (block.release === 'unknown')) return;
    const body = { metadata: {}, status: { release: word } };
    this.cluster.writeBlock(ADMIN, { verb: 'patch-status', name: block.metadata.name, body });
  }

  serve(pick: number, ending: RequestFate): void {
    this.cluster.serve(pick, ending);
  }

  advance(ms: number): void {
    this.cluster.now += ms;
  }

  /** @throws {Error} if an address has two owners */
  check(): void {
    this.cluster.checker.observe();
    const holders = new Map<string, LeaseRecord>();
    for (const lease of this.cluster.leases.list()) {
      const key = `${lease.addressSpace} ${lease.address.family} ${lease.address.value}`;
      if (holders.has(key)) throw new Error(`${key} is leased twice`);
      holders.set(key, lease);
    }
  }

  /** Ends all faults while pods stay, and checks that no block is still being released. */
  settle(): void {
    for (const block of this.#blocksOfOtherVersions()) this.setRelease(this.cluster.blocks.list().indexOf(block), null);
    this.cluster.setPool('usual');
    if (this.cluster.pools.get('blue')?.isEnding === true) {
      this.cluster.setPool('gone');
      this.cluster.setPool('usual');
    }
    for (const name of NODES) this.cluster.setNode(name, 'there');
    this.#rounds();
    const blocks = this.cluster.blocks.list();
    const leases = this.cluster.leases.list();
    const picked = blocks.find((block) => isOutgrown(block) && block.metadata.deletionTimestamp === undefined);
    if (picked !== undefined) throw new Error(`${picked.metadata.name} is no slice, but ${picked.node} picks from it`);
    for (const block of blocks.filter(isWithdrawn)) {
      if (leases.some((lease) => isLeaseInBlock(lease, block))) continue;
      throw new Error(`${block.metadata.name} of ${block.node} is withdrawn and unused, but still exists`);
    }
    // a withdrawn block stays marked while pods use it
    this.#expectSettled(blocks.filter((block) => !isWithdrawn(block)));
  }

  /** Also ends all pods and claims, while one node stays deleted, and checks that no block and no lease is left. */
  settleEmpty(): void {
    this.cluster.setNode(NODES.at(-1)!, 'gone');
    this.#claims.clear();
    for (const pod of this.#pods) pod.isAlive = false;
    this.#rounds();
    this.#expectSettled(this.cluster.blocks.list());
    const [left] = this.cluster.blocks.list();
    if (left !== undefined) throw new Error(`${left.metadata.name} is assigned to ${left.node}, which has no pods`);
    const [lease] = this.cluster.leases.list();
    if (lease !== undefined) throw new Error(`${lease.metadata.name} is held by a deleted owner`);
  }

  #rounds(): void {
    for (let round = 0; round < SETTLE_ROUNDS; round++) {
      this.cluster.now += ROUND_MS;
      this.runAll();
      this.check();
    }
  }

  #expectSettled(blocks: readonly BlockRecord[]): void {
    for (const [node, { lent }] of this.agents.entries()) {
      if (this.cluster.nodes.get(NODES[node]!) === undefined) continue;
      const own = this.cluster.blocks.list().filter((block) => block.node === NODES[node]);
      if (namesOf(own) !== namesOf(lent.all()))
        throw new Error(`${NODES[node]} has ${namesOf(own)}, not ${namesOf(lent.all())}`);
    }
    const stuck = blocks.find(({ release }) => release !== undefined);
    if (stuck !== undefined) throw new Error(`${stuck.metadata.name} of ${stuck.node} is still ${stuck.release}`);
  }

  #blocksOfOtherVersions(): BlockRecord[] {
    return this.cluster.blocks.list().filter(({ release }) => release === 'unknown');
  }

  get #living(): ModelPod[] {
    return this.#pods.filter(({ isAlive }) => isAlive);
  }

  #agentOf({ node }: ModelPod): ModelBlockAgent {
    return this.agents[NODES.findIndex((name) => name === node)]!;
  }

  #block(pick: number): BlockRecord | undefined {
    return choose(this.cluster.blocks.list(), pick);
  }

  #startIpam(): ModelIpam {
    return new ModelIpam(this.cluster, `ipam ${++this.#count}`);
  }

  #startAgent(node: number): ModelBlockAgent {
    const random = () => (this.#draws++ * 0.618_033_988_75) % 1;
    return new ModelBlockAgent(this.cluster, NODES[node]!, { life: ++this.#count, random });
  }
}

function choose<T>(among: readonly T[], pick: number): T | undefined {
  return among[pick % Math.max(among.length, 1)];
}

/** Whether the block is being deleted, or is no slice of the pool. */
function isWithdrawn(block: BlockRecord): boolean {
  return block.metadata.deletionTimestamp !== undefined || isOutgrown(block);
}

function isOutgrown({ cidr }: BlockRecord): boolean {
  return cidr.prefixLength !== blockSizeOf('usual', cidr.family);
}

function namesOf(blocks: readonly BlockRecord[]): string {
  return blocks
    .map(({ metadata: { name, uid } }) => `${name} (${uid})`)
    .sort()
    .join();
}
