import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { startBed, type Bed } from '../../bed/bed.js';
import type { ApiServer } from '../../bed/control-plane/api-server.js';
import { findFreePorts } from '../../bed/processes/ports.js';
import { Agents } from '../../bed/holdfast/agents.js';
import { buildHoldfast, endpointOf, HOLDFAST_NAMESPACE, installHoldfast } from '../../bed/holdfast/install.js';
import { applyManifests } from '../../bed/holdfast/manifests.js';
import { until } from '../../bed/processes/wait.js';
import { HoldfastProcess, type ProcessName } from '../../bed/holdfast/process.js';
import { LEASES } from '../../kube/leader-election.js';
import { SteppedClock } from '../../bed/faults/stepped-clock.js';
import { LoadBalancer } from './load-balancer.js';

export type Role = Exclude<ProcessName, 'all' | 'guest'>;
export type ElectedRole = 'controller' | 'ipam' | 'capacity';

const NODES = 3;
const REPLICAS: Readonly<Record<Exclude<Role, 'agent'>, number>> = { controller: 2, ipam: 2, webhook: 3, capacity: 2 };
/** The period of the shipped readiness probe. */
/** The default of the probes of Kubernetes, which the manifests use. */
const FAILURE_THRESHOLD = 3;
const READINESS_EVERY_MS = 2_000;

/** One process of the fleet. */
export interface Member {
  /** `ipam-1`, `agent-3`. */
  readonly name: string;
  readonly role: Role;
  /** By default, the first of each role is never ended, so that its memory can be observed over the whole run. It is paused and cut off as the others. */
  readonly isSpared: boolean;
  readonly process: HoldfastProcess;
  readonly kubeconfig: string;
  /** A fault has it down. */
  isDown: boolean;
}

type FleetParts = Pick<Fleet, 'bed' | 'balancer' | 'apiServer' | 'members' | 'clock'>;

export interface FleetOptions {
  readonly progress?: (line: string) => void;
  /** Skips the build, which would replace the files of processes that run. */
  readonly isBuilt?: boolean;
  /** Lets the clock be stepped, which needs libfaketime. */
  readonly stepsClock?: boolean;
  readonly keepLogs?: boolean;
  /** Faults may end every process, because the run is too short to observe memory. */
  readonly sparesNone?: boolean;
}

/** All of Holdfast's processes in replicas, on a bed with two API servers behind a load balancer. */
export class Fleet {
  readonly bed: Bed;
  readonly balancer: LoadBalancer;
  /** The API server that serves all of Holdfast's connections while it is healthy; KubeVirt uses the other one. */
  readonly apiServer: ApiServer;
  readonly members: readonly Member[];
  /** The wall clock of all members; undefined if it is not to be stepped. */
  readonly clock: SteppedClock | undefined;
  readonly #stopping = new AbortController();
  readonly #readiness: Promise<unknown>;
  /** By name of the process. */
  readonly #published = new Map<string, boolean>();

  private constructor({ bed, balancer, apiServer, members, clock }: FleetParts) {
    this.bed = bed;
    this.balancer = balancer;
    this.apiServer = apiServer;
    this.members = members;
    this.clock = clock;
    const replicas = members.filter(({ role }) => role === 'webhook' || role === 'ipam');
    this.#readiness = Promise.all(replicas.map((member) => this.#publishReadiness(member)));
  }

  static async start({
    progress,
    isBuilt,
    stepsClock,
    keepLogs = false,
    sparesNone = false,
  }: FleetOptions): Promise<Fleet> {
    if (!isBuilt) await buildHoldfast();
    const bed = await startBed({ nodes: NODES, keepLogs, ...(progress && { progress }) });
    try {
      const [apiPort = 0, ...ports] = await findFreePorts(1 + REPLICAS.webhook + REPLICAS.ipam);
      const apiServer = bed.apiServer.replica('kube-apiserver-2', apiPort);
      await apiServer.start();
      const balancer = await LoadBalancer.open([apiServer, bed.apiServer], bed.certificates.ca);
      const portsOf = (index: number) => ({
        webhook: ports[Math.min(index, REPLICAS.webhook - 1)]!,
        ipam: ports[REPLICAS.webhook + Math.min(index, REPLICAS.ipam - 1)]!,
      });
      await installHoldfast(bed, portsOf(0));
      const replicas = Object.entries(REPLICAS).flatMap(([role, count]) =>
        Array.from({ length: count }, (_, index) => ({
          name: `${role}-${String(index + 1)}`,
          role: role as Role,
          isSpared: index === 0 && !sparesNone,
          process: new HoldfastProcess(bed, role as Role, portsOf(index)),
        })),
      );
      const agents = bed.wire === undefined ? [] : new Agents(bed, portsOf(0)).all;
      const ofNodes = agents.map((process, index) => ({
        name: `agent-${String(index + 1)}`,
        role: 'agent' as const,
        isSpared: index === 0 && !sparesNone,
        process,
      }));
      const members: Member[] = [];
      for (const one of [...replicas, ...ofNodes]) {
        const kubeconfig = await balancedKubeconfig(bed, balancer, one.process, one.name);
        members.push({ ...one, kubeconfig, isDown: false });
      }
      const clock = stepsClock ? await SteppedClock.create(`${bed.dataDir}/clock`) : undefined;
      const fleet = new Fleet({ bed, balancer, apiServer, members, clock });
      await Promise.all(members.map((member) => fleet.start(member)));
      await until('all endpoints to be ready', () => [...fleet.#published.values()].every((ready) => ready));
      return fleet;
    } catch (error) {
      await bed.stop();
      throw error;
    }
  }

  of(role: Role): Member[] {
    return this.members.filter((member) => member.role === role);
  }

  /** The replica that holds the Lease. */
  async leader(role: ElectedRole): Promise<Member | undefined> {
    const lease = await this.bed.client.find(LEASES, { namespace: HOLDFAST_NAMESPACE, name: `holdfast-${role}` });
    const pid = Number(lease?.spec?.holderIdentity?.split('_').at(-1));
    return this.of(role).find(({ process }) => process.running && process.pid === pid);
  }

  /** Starts a process, and waits until it is ready. */
  async start(member: Member): Promise<void> {
    const isElected = member.role !== 'webhook' && member.role !== 'agent';
    const args = isElected ? ['--leader-elect'] : [];
    await member.process.start({ kubeconfig: member.kubeconfig, args, ...(this.clock && { env: this.clock.env }) });
    member.isDown = false;
  }

  /** Waits until no new connection leads to a webhook that will end. A pod that is deleted loses its endpoint first, too. */
  async withdraw({ role, name, process }: Member): Promise<void> {
    if (role === 'webhook') await this.#publish(role, name, process.ports.webhook, false);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#readiness;
    this.balancer.close();
    await this.bed.stop();
  }

  /** Does the work of kubelet and EndpointSlice controller: a Service leads only to replicas that are ready. */
  async #publishReadiness(member: Member): Promise<void> {
    const { role, name, process } = member;
    const port = role === 'webhook' ? process.ports.webhook : process.ports.ipam;
    let failures = 0;
    while (!this.#stopping.signal.aborted) {
      failures = (await isReady(process)) ? 0 : failures + 1;
      const ready = process.running && failures < FAILURE_THRESHOLD;
      // a process that a fault ends is withdrawn before
      if (!(member.isDown && ready)) await this.#publish(role, name, port, ready).catch(() => undefined);
      await pause(READINESS_EVERY_MS);
    }
  }

  async #publish(role: Role, name: string, port: number, ready: boolean): Promise<void> {
    if (this.#published.get(name) === ready) return;
    const replica = name.endsWith('-1') ? 'bed' : name;
    await applyManifests(this.bed.client, [endpointOf(`holdfast-${role}`, port, { name: replica, ready })]);
    this.#published.set(name, ready);
  }
}

async function isReady(process: HoldfastProcess): Promise<boolean> {
  const timeout = pause(1_000).then(() => false);
  return Promise.race([process.isReady().catch(() => false), timeout]);
}

/** The kubeconfig of a process with the address of the load balancer. */
async function balancedKubeconfig(
  bed: Bed,
  balancer: LoadBalancer,
  process: HoldfastProcess,
  name: string,
): Promise<string> {
  const text = await readFile(await process.ownKubeconfig(), 'utf8');
  const path = `${bed.workDir}/${name}.kubeconfig`;
  await writeFile(path, text.replaceAll(bed.server, balancer.url), { mode: 0o600 });
  return path;
}
