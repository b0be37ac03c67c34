import { join } from 'node:path';
import type { Bed } from '../bed.js';
import { nodeFolder } from '../network/open-pod-networks.js';
import type { ServicePorts } from './install.js';
import { HoldfastProcess } from './process.js';

/** The agents of a bed, one for each node, with tokens that are bound to their nodes. */
export class Agents {
  readonly #byNode: ReadonlyMap<string, HoldfastProcess>;

  /** @param bed with real pod networks */
  constructor(bed: Bed, ports: ServicePorts) {
    this.#byNode = new Map(
      bed.nodes.map((name) => {
        const runDir = join(nodeFolder(bed, name), 'run-holdfast');
        return [name, new HoldfastProcess(bed, 'agent', ports, { name, runDir })];
      }),
    );
  }

  /** The agent of a node. @throws {Error} for a node that the bed does not have */
  on(node: string): HoldfastProcess {
    const agent = this.#byNode.get(node);
    if (agent === undefined) throw new Error(`there is no node "${node}", only ${[...this.#byNode.keys()].join()}`);
    return agent;
  }

  get all(): readonly HoldfastProcess[] {
    return [...this.#byNode.values()];
  }

  /** Starts all of them and waits until they are ready. */
  async start(): Promise<void> {
    await Promise.all(this.all.map((agent) => agent.start()));
  }
}
