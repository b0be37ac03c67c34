import { join } from 'node:path';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { findFreePorts } from '../../bed/processes/ports.js';
import type { Child } from '../../bed/processes/processes.js';
import { waitReady } from '../../bed/control-plane/ready.js';
import { writeServiceAccountKubeconfig } from '../../bed/control-plane/service-accounts.js';
import { nodeFlags } from '../../bed/holdfast/image.js';
import { AGENTS_NAMESPACE } from '../../bed/holdfast/install.js';
import { nodeOfImage } from '../../test/image/node.js';
import { type Usage, usageOf } from '../usage.js';
import { sum } from './sum.js';

export const AGENT_ACCOUNT = { namespace: AGENTS_NAMESPACE, name: 'holdfast-agent' };

/** `holdfast agent` as it is shipped, for one node. */
export class AgentOfNode {
  readonly node: string;
  readonly #plane: ControlPlane;
  readonly #runDir: string;
  #child: Child | undefined;
  #metricsPort = 0;

  /** @param runDir in memory, as `/run` is */
  constructor(plane: ControlPlane, node: string, runDir: string) {
    this.#plane = plane;
    this.node = node;
    this.#runDir = runDir;
  }

  /** Path of the socket for the plugin. */
  get socket(): string {
    return join(this.#runDir, 'agent.sock');
  }

  /** Starts the process and waits until it is ready. */
  async start(): Promise<void> {
    const [metrics = 0] = await findFreePorts(1);
    this.#metricsPort = metrics;
    const kubeconfig = await writeServiceAccountKubeconfig(this.#plane, AGENT_ACCOUNT, { node: this.node });
    const flags = [`--kubeconfig=${kubeconfig}`, `--node-name=${this.node}`, `--run-dir=${this.#runDir}`];
    this.#child = await startHoldfast(this.#plane, `agent-${this.node}`, ['agent', ...flags], metrics);
  }

  async stop(): Promise<void> {
    await this.#child?.stop();
  }

  usage(): Promise<Usage> {
    return usageOf(this.#child?.pid ?? 0);
  }

  /** Returns the number of requests to the API server so far. */
  async requests(): Promise<{ reads: number; writes: number }> {
    const text = await (await fetch(`http://127.0.0.1:${String(this.#metricsPort)}/metrics`)).text();
    const series = text.split('\n').filter((line) => line.startsWith('holdfast_kube_request_duration_seconds_count{'));
    const countOf = (some: string[]) => sum(some, (line) => Number(line.slice(line.lastIndexOf(' '))));
    const reads = countOf(series.filter((line) => line.includes('method="GET"')));
    return { reads, writes: countOf(series) - reads };
  }
}

/** Starts a Holdfast process and waits until it is ready. @param args its subcommand and flags */
export async function startHoldfast(
  plane: ControlPlane,
  name: string,
  args: string[],
  metrics: number,
): Promise<Child> {
  const [health = 0] = await findFreePorts(1);
  const binds = [['health', health] as const, ['metrics', metrics] as const].map(
    ([what, port]) => `--${what}-bind-address=127.0.0.1:${String(port)}`,
  );
  const all = [...(await nodeFlags()), 'dist/holdfast.js', ...args, ...binds, '--metrics-secure=false'];
  const child = plane.processes.start({ name, command: await nodeOfImage(), args: all });
  await waitReady(child, async () => (await fetch(`http://127.0.0.1:${String(health)}/readyz`)).ok);
  return child;
}
