import type { Bed } from '../bed.js';
import { findFreePorts } from '../processes/ports.js';
import type { Child } from '../processes/processes.js';
import { waitReady } from '../control-plane/ready.js';
import { nodeOfImage } from '../../test/image/node.js';
import { nodeFlags } from './image.js';
import { AGENTS_NAMESPACE, HOLDFAST_NAMESPACE, type ServicePorts } from './install.js';
import { CURRENT_RELEASE, executableOf, knownArgs, type Release } from './release.js';

/** `all`: all in one process, with the rights of a cluster administrator. */
export type ProcessName = 'controller' | 'webhook' | 'ipam' | 'agent' | 'capacity' | 'guest' | 'all';

/** Shorter than the defaults, because tests wait for cool-downs, leak collection and timeouts. */
const QUICK: readonly string[] = ['--max-staleness=500ms', '--collect-after=2s'];
/** A scheduler retries a pod after at most 10 s. */
const QUICK_CAPACITY: readonly string[] = ['--publish-interval=200ms', '--publish-offer-timeout=12s'];
const QUICK_REPORT = '--unhonoured-after=3s';
const QUICK_GUEST = '--guest-grace=2s';
const QUICK_IPAM: readonly string[] = [...QUICK, QUICK_REPORT, '--pool-status-interval=1s'];

/** The node of an agent. */
export interface AgentNode {
  readonly name: string;
  /** The folder that is /run/holdfast on the node. */
  readonly runDir: string;
}

export interface ProcessOptions {
  /** Replaces the kubeconfig of the shipped service account. */
  readonly kubeconfig?: string;
  readonly args?: readonly string[];
  /** The version to run, this one by default. Flags that another version does not know are left out. */
  readonly release?: Release;
  readonly env?: Readonly<Record<string, string>>;
  /** Names one of several processes of this name. */
  readonly instance?: string;
}

/** One of Holdfast's processes, run on this machine against the bed with the token of its shipped service account. */
export class HoldfastProcess {
  readonly name: ProcessName | 'guest' | 'responder';
  readonly ports: ServicePorts;
  readonly #bed: Bed;
  readonly #node: AgentNode | undefined;
  #child: Child | undefined;
  #healthPort = 0;
  #metricsPort = 0;

  /**
   * @param ports to which the Services are connected
   * @param node of an agent
   */
  constructor(bed: Bed, name: HoldfastProcess['name'], ports: ServicePorts, node?: AgentNode) {
    this.#bed = bed;
    this.#node = node;
    this.name = name;
    this.ports = ports;
  }

  get pid(): number {
    return this.#running().pid;
  }

  /** Starts the process and waits until it says that it is ready. */
  async start(options: ProcessOptions = {}): Promise<void> {
    await this.launch(options);
    await this.waitReady();
  }

  /** Starts the process; it may not be ready yet. */
  async launch(options: ProcessOptions = {}): Promise<void> {
    const [health, metrics] = await findFreePorts(2);
    this.#healthPort = health ?? 0;
    this.#metricsPort = metrics ?? 0;
    const kubeconfig = options.kubeconfig ?? (await this.ownKubeconfig());
    const release = options.release ?? CURRENT_RELEASE;
    const flags = [
      `--kubeconfig=${kubeconfig}`,
      `--health-bind-address=127.0.0.1:${String(this.#healthPort)}`,
      `--metrics-bind-address=127.0.0.1:${String(this.#metricsPort)}`,
      ...this.#addressFlags(),
      ...(options.args ?? []),
    ];
    const args = [
      ...(await nodeFlags()),
      executableOf(release),
      this.name,
      ...(await knownArgs(release, this.name, flags)),
    ];
    const name = ['holdfast', this.name, options.instance ?? this.#node?.name ?? []].flat().join('-');
    // by a variable, which an older release ignores
    const env = { HOLDFAST_METRICS_SECURE: 'false', ...options.env };
    this.#child = this.#bed.processes.start({ name, command: await nodeOfImage(), args, env });
  }

  async waitReady(): Promise<void> {
    await waitReady(this.#running(), async () => (await fetch(`${this.#healthUrl}/readyz`)).ok);
  }

  async isReady(): Promise<boolean> {
    return (await fetch(`${this.#healthUrl}/readyz`)).ok;
  }

  get metricsPort(): number {
    return this.#metricsPort;
  }

  /** The text of `/metrics`. */
  async metrics(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${String(this.#metricsPort)}/metrics`)).text();
  }

  /** Sends SIGTERM, and waits for a graceful shutdown. */
  async stop(): Promise<void> {
    await this.#child?.stop();
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.#child?.kill();
  }

  /** SIGSTOP. */
  async pause(): Promise<void> {
    await this.#child?.pause();
  }

  /** SIGCONT. */
  resume(): void {
    this.#child?.signal('SIGCONT');
  }

  get running(): boolean {
    return this.#child?.running ?? false;
  }

  /** Path of a kubeconfig with a new token of the shipped service account. */
  ownKubeconfig(): Promise<string> {
    if (this.#node) {
      return this.#bed.serviceAccountKubeconfig(AGENTS_NAMESPACE, 'holdfast-agent', { node: this.#node.name });
    }
    return this.#bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, `holdfast-${this.name}`);
  }

  #addressFlags(): string[] {
    const has = (name: ProcessName) => this.name === name || this.name === 'all';
    return [
      ...(has('webhook') ? [`--webhook-bind-address=127.0.0.1:${String(this.ports.webhook)}`] : []),
      ...(has('ipam') ? [`--validation-bind-address=127.0.0.1:${String(this.ports.ipam)}`, ...QUICK_IPAM] : []),
      ...(this.name === 'controller' ? [QUICK_REPORT] : []),
      ...(this.name === 'capacity' ? QUICK_CAPACITY : []),
      ...(this.name === 'guest' ? [QUICK_GUEST] : []),
      ...(this.#node ? [`--node-name=${this.#node.name}`, `--run-dir=${this.#node.runDir}`, ...QUICK] : []),
    ];
  }

  get #healthUrl(): string {
    return `http://127.0.0.1:${String(this.#healthPort)}`;
  }

  #running(): Child {
    if (this.#child === undefined) throw new Error(`holdfast ${this.name} was never started`);
    return this.#child;
  }
}
