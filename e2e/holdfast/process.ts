import type { Bed } from '../bed/bed.js';
import { findFreePorts } from '../bed/ports.js';
import type { Child } from '../bed/processes.js';
import { waitReady } from '../bed/ready.js';
import { nodeFlags } from './image.js';
import { HOLDFAST_NAMESPACE } from './install.js';

/** `all`: both in one process, under the controller's identity. */
export type ProcessName = 'controller' | 'webhook' | 'all';

export interface ProcessOptions {
  /** In place of a kubeconfig of the shipped service account. */
  readonly kubeconfig?: string;
  readonly args?: readonly string[];
}

/** One of Holdfast's processes, run on this machine against the bed with the token of its shipped service account. */
export class HoldfastProcess {
  readonly name: ProcessName;
  readonly webhookPort: number;
  readonly #bed: Bed;
  #child: Child | undefined;
  #healthPort = 0;
  #metricsPort = 0;

  /** @param webhookPort where the webhook's Service leads; of no meaning for the controller */
  constructor(bed: Bed, name: ProcessName, webhookPort: number) {
    this.#bed = bed;
    this.name = name;
    this.webhookPort = webhookPort;
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
    const account = this.name === 'webhook' ? 'holdfast-webhook' : 'holdfast-controller';
    const kubeconfig = options.kubeconfig ?? (await this.#bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, account));
    const args = [
      ...(await nodeFlags()),
      'dist/holdfast.js',
      this.name,
      `--kubeconfig=${kubeconfig}`,
      `--health-bind-address=127.0.0.1:${String(this.#healthPort)}`,
      `--metrics-bind-address=127.0.0.1:${String(this.#metricsPort)}`,
      ...(this.name !== 'controller' ? [`--webhook-bind-address=127.0.0.1:${String(this.webhookPort)}`] : []),
      ...(options.args ?? []),
    ];
    this.#child = this.#bed.processes.start({ name: `holdfast-${this.name}`, command: process.execPath, args });
  }

  async waitReady(): Promise<void> {
    await waitReady(this.#running(), async () => (await fetch(`${this.#healthUrl}/readyz`)).ok);
  }

  async isReady(): Promise<boolean> {
    return (await fetch(`${this.#healthUrl}/readyz`)).ok;
  }

  /** The text of `/metrics`. */
  async metrics(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${String(this.#metricsPort)}/metrics`)).text();
  }

  /** SIGTERM, and the wait for a graceful end. */
  async stop(): Promise<void> {
    await this.#child?.stop();
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.#child?.kill();
  }

  get running(): boolean {
    return this.#child?.running ?? false;
  }

  get #healthUrl(): string {
    return `http://127.0.0.1:${String(this.#healthPort)}`;
  }

  #running(): Child {
    if (this.#child === undefined) throw new Error(`holdfast ${this.name} was never started`);
    return this.#child;
  }
}
