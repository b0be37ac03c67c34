import { join } from 'node:path';
import type { Bed } from '../../bed/bed.js';
import { cniBinFolder } from '../../bed/network/open-pod-networks.js';
import { resourceOf, type Manifest } from '../../bed/control-plane/objects.js';
import { findFreePorts } from '../../bed/processes/ports.js';
import { Agents } from '../../bed/holdfast/agents.js';
import { endpointOf, withoutSelector } from '../../bed/holdfast/install.js';
import { applyManifests, readInstallation, withoutReplicas } from '../../bed/holdfast/manifests.js';
import { HoldfastProcess, type ProcessName } from '../../bed/holdfast/process.js';
import { installPlugin, type Release } from '../../bed/holdfast/release.js';

/** The processes of Deployments: during a roll-out, those of both versions run. */
export type DeploymentName = Exclude<ProcessName, 'agent' | 'all' | 'guest'>;
export const DEPLOYMENTS: readonly DeploymentName[] = ['ipam', 'controller', 'webhook', 'capacity'];

const GATES = '--feature-gates=PersistentIPs=true,NodeBlocks=true';
const ARGS: Readonly<Record<ProcessName, readonly string[]>> = {
  // a busy machine causes no warning that ipam does not answer
  controller: ['--leader-elect', '--unhonoured-after=5m'],
  ipam: ['--leader-elect', GATES, '--block-min-free=2', '--block-max-free=9', '--excess-release-delay=1s'],
  capacity: ['--leader-elect'],
  webhook: [],
  agent: [GATES],
  guest: [],
  all: [],
};

/** Runs versions of Holdfast on a bed, and replaces one by another as Kubernetes does. */
export class Rollout {
  readonly agents: Agents;
  readonly #bed: Bed;
  readonly #running = new Map<DeploymentName, { process: HoldfastProcess; release: Release }>();

  /** @param bed with real pod networks */
  constructor(bed: Bed) {
    this.#bed = bed;
    this.agents = new Agents(bed, { webhook: 0, ipam: 0 });
  }

  /** Applies all manifests of a version. Their pods do not start, because the processes run on this machine. */
  async applyManifests({ folder }: Release): Promise<void> {
    await this.#apply(await readInstallation(join(folder, 'manifests')));
  }

  /** Applies the manifests of a version without its CRDs. */
  async applyWorkloads({ folder }: Release): Promise<void> {
    const objects = await readInstallation(join(folder, 'manifests'));
    await this.#apply(objects.filter(({ kind }) => kind !== 'CustomResourceDefinition'));
  }

  #apply(objects: readonly Manifest[]): Promise<void> {
    return applyManifests(this.#bed.client, objects.map(withoutSelector).map(withoutReplicas));
  }

  async startAll(release: Release): Promise<void> {
    await this.installPlugin(release);
    const agents = this.#bed.nodes.map((node) => this.#startAgent(node, release));
    await Promise.all([...DEPLOYMENTS.map((name) => this.replace(name, release)), ...agents]);
  }

  installPlugin(release: Release): Promise<void> {
    return installPlugin(release, cniBinFolder(this.#bed));
  }

  /**
   * Starts a process of another version, and stops the one that runs when the other is ready.
   * @param meanwhile runs while both are ready and serve
   */
  async replace(name: DeploymentName, release: Release, meanwhile?: () => Promise<void>): Promise<void> {
    const [webhook = 0, ipam = 0] = await findFreePorts(2);
    const before = this.#running.get(name);
    const process = new HoldfastProcess(this.#bed, name, { webhook, ipam });
    await process.start({ args: ARGS[name], release });
    this.#running.set(name, { process, release });
    await this.#connect(process);
    if (before === undefined) return;
    await meanwhile?.();
    await this.#disconnect(before.process);
    await before.process.stop();
  }

  /** Kills all processes and starts them again, as after a crash of their nodes. */
  async restartAll(): Promise<void> {
    await Promise.all(
      [...this.#running].map(async ([name, { process, release }]) => {
        await process.kill();
        await process.start({ args: ARGS[name], release });
      }),
    );
  }

  /** Replaces the agent of a node. @param meanwhile runs while no agent does */
  async replaceAgent(node: string, release: Release, meanwhile?: () => Promise<void>): Promise<void> {
    await this.agents.on(node).stop();
    await meanwhile?.();
    await this.#startAgent(node, release);
  }

  #startAgent(node: string, release: Release): Promise<void> {
    return this.agents.on(node).start({ args: ARGS.agent, release });
  }

  /** Adds a port of this machine to the Service of the process, besides those of others. */
  async #connect({ name, ports }: HoldfastProcess): Promise<void> {
    if (name !== 'webhook' && name !== 'ipam') return;
    await applyManifests(this.#bed.client, [sliceOf(name, ports[name])]);
  }

  async #disconnect({ name, ports }: HoldfastProcess): Promise<void> {
    if (name !== 'webhook' && name !== 'ipam') return;
    const slice = sliceOf(name, ports[name]);
    await this.#bed.client.delete(resourceOf(slice), slice.metadata);
  }
}

function sliceOf(name: 'webhook' | 'ipam', port: number): Manifest {
  const slice = endpointOf(`holdfast-${name}`, port);
  return { ...slice, metadata: { ...slice.metadata, name: `holdfast-${name}-${String(port)}` } };
}
