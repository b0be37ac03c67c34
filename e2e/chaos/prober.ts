import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { controllingVmi, type Pod } from '../../api/pod.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { AgentPods, NET1 } from '../../bed/faults/agent-pods.js';
import type { Story } from '../../bed/story/story.js';
import type { Fleet } from './fleet.js';
import { LauncherCreator } from '../../bed/story/vms/launcher-creator.js';

const SERVICES = {
  'a new VM has its addresses': 2_000,
  'a claim has its addresses': 2_000,
  'a launcher is admitted': 500,
  'CNI ADD is answered': 1_000,
} as const;
/** What users wait for, and how often it is asked for, in ms. */
export type Service = keyof typeof SERVICES;
export const SERVICE_NAMES = Object.keys(SERVICES) as Service[];

const RETRY_MS = 100;

/** One request with its retries. */
export interface Probe {
  readonly service: Service;
  readonly startedAt: number;
  endedAt?: number;
}

/** Asks for all services all the time. The time without a service is the longest time between a request and its success. */
export class Prober {
  readonly probes: Probe[] = [];
  /** Times and messages of reviews that failed. */
  readonly failedAdmissions: { readonly at: number; readonly message: string }[] = [];
  admissions = 0;
  readonly #fleet: Fleet;
  readonly #story: Story;
  readonly #pods: AgentPods | undefined;
  readonly #stopping = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #made = 0;
  #creator: LauncherCreator | undefined;
  #launcher: Pod | undefined;

  constructor(fleet: Fleet, story: Story) {
    this.#fleet = fleet;
    this.#story = story;
    this.#pods = fleet.bed.wire && new AgentPods(story, fleet.bed.wire);
  }

  async start(network: string): Promise<void> {
    await this.#story.addresses.createNetwork('probe', ['10.81.0.0/24']);
    this.#creator = await LauncherCreator.connect(this.#fleet.bed);
    for (const node of this.#nodes()) await this.#pods?.create(`probe-${node}`, node, 'probe');
    for (const node of this.#nodes()) await this.#pods?.waitRunning(`probe-${node}`);
    this.#running = Promise.all([
      this.#loop('a new VM has its addresses', () => this.#newVm()),
      this.#loop('a claim has its addresses', () => this.#newClaim(network)),
      this.#loop('a launcher is admitted', () => this.#admission()),
      ...this.#nodes().map((node) => this.#loop('CNI ADD is answered', () => this.#add(node))),
    ]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#creator?.close();
  }

  /** Whether every service was asked for after this time and has answered. */
  isServed(since: number): boolean {
    const served = new Set(
      this.probes.flatMap(({ service, startedAt, endedAt }) => (startedAt >= since && endedAt ? [service] : [])),
    );
    return SERVICE_NAMES.every((service) => served.has(service) || (service === 'CNI ADD is answered' && !this.#pods));
  }

  /** The longest wait of probes that ran in an interval, in ms. */
  longestWait(service: Service, from: number, to: number): number {
    const waits = this.probes
      .filter((probe) => probe.service === service && probe.startedAt < to && (probe.endedAt ?? Infinity) > from)
      .map(({ startedAt, endedAt }) => (endedAt ?? Date.now()) - startedAt);
    return Math.max(0, ...waits);
  }

  async #loop(service: Service, ask: () => Promise<() => Promise<void>>): Promise<void> {
    while (!this.#isStopping) {
      const probe: Probe = { service, startedAt: Date.now() };
      this.probes.push(probe);
      const clean = await this.#answer(ask);
      probe.endedAt = Date.now();
      await this.#persistently(clean);
      await pause(SERVICES[service]);
    }
  }

  /** Asks until it succeeds, or until the end. */
  async #answer(ask: () => Promise<() => Promise<void>>): Promise<() => Promise<void>> {
    while (!this.#isStopping) {
      const clean = await ask().catch(() => undefined);
      if (clean) return clean;
      await pause(RETRY_MS);
    }
    return () => Promise.resolve();
  }

  async #newVm(): Promise<() => Promise<void>> {
    const name = `probe-vm-${String(this.#made++)}`;
    await this.#story.createVm(name, { data: 'blue' }, { running: false });
    await this.#addresses(`${name}.data`);
    return () => this.#story.deleteVm(name, 'Background');
  }

  async #newClaim(network: string): Promise<() => Promise<void>> {
    const name = `probe-${String(this.#made++)}`;
    await this.#story.claims.createPlain(name, network);
    await this.#addresses(name);
    return () => this.#story.claims.remove(name);
  }

  async #addresses(name: string): Promise<void> {
    while (!this.#isStopping) {
      const claim = await this.#story.client.find(IPAM_CLAIMS, this.#story.ref(name));
      if ((claim?.status?.ips?.length ?? 0) > 0) return;
      await pause(RETRY_MS);
    }
  }

  async #admission(): Promise<() => Promise<void>> {
    const launcher = await this.#anyLauncher();
    this.admissions++;
    try {
      await this.#creator!.admitCopy(launcher);
      return () => Promise.resolve();
    } catch (error) {
      this.#launcher = undefined;
      const message = error instanceof Error ? error.message : String(error);
      // without an answer, the API server was late or away: that counts as waiting
      const isRejected = !(error instanceof TransportError);
      const isOfGoneVm = error instanceof StatusError && error.status === 403;
      if (isRejected && !isOfGoneVm) this.failedAdmissions.push({ at: Date.now(), message });
      throw error;
    }
  }

  /** A launcher of VM `probe`, which no churn touches. */
  async #anyLauncher(): Promise<Pod> {
    const launchers = this.#launcher ? [this.#launcher] : await this.#story.launchers('probe');
    this.#launcher = launchers.find((pod) => controllingVmi(pod) !== undefined);
    if (!this.#launcher) throw new Error('VM probe has no launcher');
    return this.#launcher;
  }

  async #add(node: string): Promise<() => Promise<void>> {
    const { wire } = this.#fleet.bed;
    const pods = this.#pods!;
    const [pod, config] = [await pods.get(`probe-${node}`), await pods.config('probe')];
    const call = { config, pod, containerId: randomBytes(32).toString('hex'), interfaceName: NET1 };
    const { exitCode, answer } = await wire!.callPlugin(node, { ...call, verb: 'ADD' });
    if (exitCode !== 0) throw new Error(JSON.stringify(answer));
    return async () => {
      const deleted = await wire!.callPlugin(node, { ...call, verb: 'DEL' });
      if (deleted.exitCode !== 0) throw new Error(JSON.stringify(deleted.answer));
    };
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  #nodes(): readonly string[] {
    return this.#pods === undefined ? [] : this.#fleet.bed.nodes;
  }

  async #persistently(act: () => Promise<void>): Promise<void> {
    for (let isDone = false; !isDone;) {
      isDone = await act().then(
        () => true,
        () => false,
      );
      if (!isDone) await pause(RETRY_MS);
    }
  }
}
