import { expect } from 'chai';
import { until } from '../processes/wait.js';
import { BlockStory, isIn } from '../story/blocks.js';
import type { WireContext } from '../story/describe.js';
import type { Story } from '../story/story.js';
import { AgentPods } from './agent-pods.js';
import { BlockObserver } from './block-observer.js';

/** Blocks of 8 IPv4 addresses. */
const BLOCK_SIZE = { blockSize: { ipv4: 29 } };

/** A network whose pool has blocks, with pods and an observer. */
export class BlockScenario {
  readonly story: Story;
  readonly pods: AgentPods;
  readonly pool: string;
  readonly blocks: BlockStory;
  readonly observer: BlockObserver;
  readonly #ofNode = new Map<string, string[]>();

  private constructor(story: Story, on: WireContext, { pool, network }: { pool: string; network: string }) {
    this.story = story;
    this.pool = pool;
    this.pods = new AgentPods(story, on.wire);
    this.blocks = new BlockStory(on.bed.client, pool);
    this.observer = new BlockObserver(on.bed.client, pool, network);
  }

  static async begin(
    story: Story,
    on: WireContext,
    subnets: readonly string[],
    ipam: object = BLOCK_SIZE,
  ): Promise<BlockScenario> {
    const network = await story.addresses.createNetwork('blue', subnets, ipam);
    const { metadata } = await story.addresses.waitForDerivedPool(network);
    return new BlockScenario(story, on, { pool: metadata.name, network });
  }

  /** Observes blocks and leases while `run` runs, and fails if an invariant is violated. */
  async observed(run: () => Promise<void>): Promise<BlockObserver> {
    this.observer.start();
    try {
      await run();
      const saidNow = async () => {
        const all = await this.blocks.all();
        return all.map(({ spec, status }) => `${spec.cidr} ${status?.release ?? ''}`).sort();
      };
      await until('all blocks to be observed', async () => (await saidNow()).join() === this.observer.current().join());
    } finally {
      await this.observer.stop();
    }
    expect(this.observer.violations.join('\n')).to.equal('');
    return this.observer;
  }

  /** Creates a pod for which its node gets blocks, and `count` more pods with addresses of these blocks. */
  async podsIn(node: string, count: number): Promise<void> {
    const names = this.#ofNode.get(node) ?? [];
    this.#ofNode.set(node, names);
    const next = async (): Promise<string[]> => {
      const name = `${node}-${String(names.length)}`;
      names.push(name);
      await this.pods.create(name, node);
      return this.pods.waitRunning(name);
    };
    await next();
    await this.blocks.waitAssigned(node, (lent) => lent > 0);
    for (let n = 0; n < count; n++) {
      const lent = (await this.blocks.ofNode(node)).map(({ spec }) => spec.cidr);
      for (const address of await next()) expect(isIn(address, lent), `${address} in ${lent.join()}`).to.equal(true);
    }
  }

  async podsGone(node: string): Promise<void> {
    const names = this.#ofNode.get(node) ?? [];
    this.#ofNode.delete(node);
    for (const name of names) await this.pods.delete(name);
    await Promise.all(names.map((name) => this.pods.waitGone(name)));
  }

  /** Names of the node's blocks with addresses in use. */
  async used(node: string): Promise<string[]> {
    const leases = await this.story.addresses.leases();
    const held = [...leases.values()].filter(({ spec }) => spec.node === node && spec.releasedAt === undefined);
    const used = (await this.blocks.ofNode(node)).filter(({ spec: { cidr } }) =>
      held.some(({ spec }) => isIn(spec.address, [cidr])),
    );
    return used.map(({ metadata }) => metadata.name);
  }
}
