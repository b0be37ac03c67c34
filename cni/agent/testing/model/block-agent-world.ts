import { LeaseAgentWorld, NODE } from './lease-agent-world.js';
import type { Pool } from '../../../../addressing/pool/pool.js';

/** A node that is lent blocks of a pool, with an agent that knows them. */
export class BlockAgentWorld extends LeaseAgentWorld {
  constructor(pool: Pool, ...cidrs: readonly string[]) {
    super(pool);
    this.nodeBlocks = true;
    for (const cidr of cidrs) this.cluster.blocks.set(cidr, NODE);
    this.restart();
  }

  /** Restarts the agent with complete caches. */
  restart(): void {
    this.start();
    this.agent.catchUp();
  }

  /** Lets ipam write the status, and delivers the event. */
  async setStatus(cidr: string, status: object): Promise<void> {
    this.cluster.blocks.set(cidr, NODE, status);
    await this.deliver();
  }

  async deliver(): Promise<void> {
    this.agent.catchUp();
    await this.turn();
  }

  releaseStateOf(cidr: string): string | undefined {
    return this.cluster.blocks.of(cidr)?.status?.release;
  }
}

/** @param cidr a /30 of IPv4 */
export function isIn(cidr: string): (address: string) => boolean {
  const first = Number(/\.(\d+)\/30$/.exec(cidr)?.[1]);
  return (address) => {
    const last = Number(address.split('.')[3]);
    return last >= first && last < first + 4;
  };
}
