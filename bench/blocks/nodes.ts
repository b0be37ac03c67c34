import { SimulatedAgent } from './agent.js';
import type { Latency } from './api.js';
import type { Simulation } from './simulation.js';
import { SimulatedBlocks } from './simulated-blocks.js';
import { SpaceView } from './space-view.js';

/** All nodes with their agents and watches. */
export class Nodes {
  readonly agents: readonly SimulatedAgent[];
  readonly #parts: Simulation;

  constructor(
    parts: Simulation,
    names: readonly string[],
    { latency, hasBlocks }: { latency: Latency; hasBlocks: boolean },
  ) {
    const { pool, api, time } = parts;
    this.#parts = parts;
    const views = latency.watchMs.map((lagMs) => new SpaceView(pool, api.leases.news, { lagMs, clock: time }));
    const blind = new SpaceView(pool, [], { lagMs: 0, clock: time });
    const blocksOf = new Map<string, SimulatedBlocks>();
    const lags = new Map(names.map((node, n) => [node, latency.watchMs[n % latency.watchMs.length]!]));
    this.agents = names.map((node, n) => {
      const view = views[n % views.length]!;
      if (!hasBlocks) return new SimulatedAgent({ ...parts, node, view, blind });
      const blocks = new SimulatedBlocks(parts);
      blocksOf.set(node, blocks);
      return new SimulatedAgent({ ...parts, node, view, blind, blocks });
    });
    api.leases.onNews(({ record, isGone }) => {
      const { node } = record;
      // no event: the agent learns it when it tries the address
      if (node !== undefined && isGone && hasBlocks)
        time.after(lags.get(node)!, () => blocksOf.get(node)!.expired(record));
    });
    api.blocks.onNews((news) => {
      parts.tally().ownEvents++;
      time.after(lags.get(news.record.node)!, () => blocksOf.get(news.record.node)!.observe(news));
    });
  }

  /** Number of agents that watch the whole address space. */
  get following(): number {
    return this.agents.filter(({ followsSpace }) => followsSpace).length;
  }

  /** Counts watch events during `goOn`. Agents that watch the whole space at its end count as having got all of them. */
  count(goOn: () => void): void {
    const { api, tally } = this.#parts;
    const told = api.leases.news.length;
    goOn();
    tally().spaceEvents += (api.leases.news.length - told) * this.following;
    tally().following = this.following;
  }
}
