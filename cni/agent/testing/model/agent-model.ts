import type { AddressLease } from '../../../../api/address-lease.js';
import type { Grant } from '../../result.js';
import { formatAddress } from '../../../../addressing/address/address.js';
import { PODS } from '../../../../kube/resources.js';
import { compiledPool } from '../../../../test/objects/lease-objects.js';
import { LeaseServer } from '../../../../test/object-tracker/lease-server.js';
import { ManualClock } from '../../../../test/manual-clock.js';
import { type CrashFate, ModelAgent, isExpected } from './model-agent.js';
import { IpamModel, TIMES } from './ipam-model.js';
import { COLLECT_AFTER_MS } from './lease-agent.js';
import { LeaseCluster } from './lease-api.js';
import { attachmentOf } from './lease-agent-world.js';
import {
  type ModelInterface,
  type ModelPod,
  SandboxModel,
  choose,
  isCurrent,
  nameOf,
  reportAttachment,
} from './sandbox-model.js';

export const NODES = ['n1', 'n2'] as const;
const INTERFACES = ['net1', 'net2'] as const;
/** A pool with fewer addresses than pods. */
const stickyMAC = { ttl: `${TIMES.stickyMs / 1_000}s` };
const SPEC = { subnets: [{ cidr: '10.0.0.0/29' }, { cidr: 'fd00::/125' }], stickyMAC };
const POOL = compiledPool(SPEC);
/** The pool after it was recreated in another address space, which serves every third pod. */
const MOVED = compiledPool({ ...SPEC, addressSpace: 'green' });

/** Two nodes with an agent each, their pods, and ipam, on one API server. It records violated invariants. */
export class AgentModel {
  readonly clock = new ManualClock(Date.UTC(2026, 0, 1));
  readonly cluster: LeaseCluster = new LeaseCluster(
    new LeaseServer((before, after) => this.ipam.checkWrite(before, after)),
  );
  readonly ipam: IpamModel = new IpamModel(this.cluster, POOL, {
    clock: this.clock,
    wrong: (text) => this.#violated(text),
  });
  readonly agents: ModelAgent[];
  grants = 0;
  /** Killed processes, of which writes may still arrive. */
  readonly #killed: ModelAgent[] = [];
  readonly #sandboxes = new SandboxModel();
  readonly #nodeBlocks: boolean;
  readonly #violations: string[] = [];
  readonly #pods: ModelPod[] = [];
  readonly #interfaces: ModelInterface[] = [];
  /** Names of leases that aborted requests wrote, which the agent finds at its next sweep. */
  readonly #writtenLate = new Set<string>();
  #count = 0;
  #draws = 0;

  /** @param nodeBlocks the feature gate NodeBlocks: each node has a block per family, and ipam wants those of the second one back */
  constructor(nodeBlocks: boolean) {
    this.#nodeBlocks = nodeBlocks;
    for (const cidr of nodeBlocks ? ['10.0.0.0/30', 'fd00::/126'] : []) this.cluster.blocks.set(cidr, NODES[0]);
    for (const cidr of nodeBlocks ? ['10.0.0.4/30', 'fd00::4/126'] : []) this.cluster.blocks.mark(cidr, NODES[1]);
    void this.ipam.reserve();
    this.agents = NODES.map((_, node) => this.#start(node));
  }

  startPod(node: number): void {
    this.#count += 1;
    const name = `p${this.#count}`;
    const mac = this.#count % 4 === 0 ? undefined : `02:00:00:00:00:0${this.#count % 4}`;
    const pool = this.#count % 3 === 0 ? MOVED : POOL;
    this.#pods.push({ name, node, mac, pool, isAlive: true, container: '' });
    this.cluster.setPod({ metadata: { namespace: 'apps', name, uid: `${name}-uid` }, status: { phase: 'Running' } });
    this.startSandbox(this.#pods.length - 1);
  }

  /** Starts a new sandbox of a pod, which replaces the previous one. */
  startSandbox(pick: number): void {
    const pod = choose(this.#pods, pick, ({ isAlive }) => isAlive);
    if (pod === undefined) return;
    this.#count += 1;
    const before = pod.container;
    pod.container = `c${this.#count}`;
    this.#sandboxes.replace(before, pod.container, this.#count);
    for (const name of INTERFACES) {
      const abort = new AbortController();
      const { container } = pod;
      this.#interfaces.push({ pod, container, name, isBusy: false, grant: undefined, isDeleted: false, abort });
    }
  }

  endPod(pick: number, isDeleted: boolean): void {
    const pod = choose(this.#pods, pick, ({ isAlive }) => isAlive);
    if (pod === undefined) return;
    pod.isAlive = false;
    for (const each of this.#interfaces) if (each.pod === pod) this.#sandboxes.end(each.container);
    const key = `apps/${pod.name}`;
    const object = this.cluster.pods.get(key)!;
    if (isDeleted) this.cluster.server.tracker.remove(PODS, object.metadata);
    else this.cluster.setPod({ ...object, status: { phase: 'Failed' } });
  }

  /** Sends an ADD, perhaps a repeated one, for an interface of a current sandbox. */
  add(pick: number): void {
    const each = choose(this.#interfaces, pick, (one) => isCurrent(one) && !one.isBusy);
    if (each === undefined) return;
    const { pod, container, name } = each;
    // only one interface of a pod can have the MAC address
    const mac = name === 'net1' ? pod.mac : undefined;
    const attachment = attachmentOf({ pod: pod.name, container, interface: name, ...(mac !== undefined && { mac }) });
    const agent = this.#agentOf(each);
    this.#begin(each, async (signal) => {
      each.isDeleted = false;
      this.#added(each, await agent.grant(attachment, pod.pool, { signal }));
    });
  }

  /** Sends a DEL, perhaps a repeated one, for an interface of any sandbox. */
  del(pick: number): void {
    const each = choose(this.#interfaces, pick, ({ isBusy }) => !isBusy);
    if (each === undefined) return;
    const agent = this.#agentOf(each);
    each.grant = undefined;
    this.#begin(each, async (signal) => {
      await agent.leases.release(each.container, each.name, { signal });
      each.isDeleted = true;
    });
  }

  /** Lets a tenant write into the status of a pod that an interface has the addresses of one of the pod's sandboxes. */
  misreport(pick: number): void {
    const each = choose(this.#interfaces, pick, ({ pod }) => pod.isAlive);
    if (each !== undefined) this.#report(each, addressesOf(this.#leasesAt(each)));
  }

  giveUp(pick: number): void {
    choose(this.#interfaces, pick, ({ isBusy }) => isBusy)?.abort.abort();
  }

  /** Stops an agent with all its requests, and restarts it. */
  crash(node: number, fate: CrashFate): void {
    this.agents[node]!.crash(fate);
    this.#killed.push(this.agents[node]!);
    for (const each of this.#interfaces) if (each.pod.node === node) each.isBusy = false;
    this.agents[node] = this.#start(node);
  }

  /** Lets aborted requests arrive, and time pass. */
  pass(ms: number): void {
    const late = [...this.agents, ...this.#killed].flatMap((agent) => agent.arriveLate());
    for (const name of late) this.#writtenLate.add(name);
    this.clock.advanceTo(this.clock.now() + ms);
    for (const agent of this.agents) agent.listAgainIfDue();
  }

  /** Checks that running pods hold the addresses that they got. @throws {Error} if any invariant was violated */
  check(): void {
    for (const each of this.#interfaces.filter(isCurrent)) {
      for (const address of each.grant ?? []) {
        if (!this.#holds(each, address))
          this.#violated(`${nameOf(each)} was answered ${address}, and does not hold it`);
      }
    }
    if (this.#violations.length > 0) throw new Error(this.#describe());
  }

  /** Completes all requests and delivers all events. */
  async settle(): Promise<void> {
    for (let idle = 0; idle < 3;) {
      await this.turn();
      const isIdle = this.agents.map((agent) => agent.settle()).every((each) => each);
      this.pass(1_000);
      idle = isIdle ? idle + 1 : 0;
    }
    await this.turn();
  }

  /** Checks that no lease is left after a DEL; one that was written later stays until its pod ends. Call it when nothing is under way. */
  checkDeleted(): void {
    for (const each of this.#interfaces.filter(({ isDeleted, isBusy }) => isDeleted && !isBusy)) {
      const left = this.#leasesAt(each).flatMap(({ metadata, spec }) =>
        this.#writtenLate.has(metadata.name) ? [] : spec.address,
      );
      if (left.length > 0) this.#violated(`${nameOf(each)} was torn down, and holds ${left.join()}`);
    }
  }

  /** Checks that no interface keeps the lease of an earlier sandbox that is gone beside that of the current one. Call it when nothing is under way. */
  async checkSuperseded(): Promise<void> {
    const isSettled = (one: ModelInterface) => isCurrent(one) && one.grant !== undefined && !one.isBusy;
    // Multus has the last word, after the tenant
    for (const each of this.#interfaces.filter(isSettled)) this.#report(each, each.grant ?? []);
    for (let look = 0; look < 6; look++) {
      this.pass(COLLECT_AFTER_MS / 2);
      await this.settle();
    }
    this.check();
    const { existing, ended } = this.#sandboxes;
    for (const { pod, name } of this.#interfaces.filter((one) => isSettled(one) && existing.has(one.container))) {
      const earlier = this.#interfaces.filter(
        (one) => one.pod === pod && one.name === name && ended.has(one.container),
      );
      for (const one of earlier) {
        const left = addressesOf(this.#leasesAt(one));
        if (left.length > 0) this.#violated(`${nameOf(one)} is gone, and holds ${left.join()} beside its successor`);
      }
    }
    this.check();
  }

  /** Checks that every request to release a block is answered. Call it when nothing is under way. */
  checkAnswered(): void {
    for (const cidr of this.cluster.blocks.marked) this.#violated(`${cidr} was marked and not answered`);
  }

  /** Ends all pods without a DEL, and checks that their leases are released. */
  async endAll(): Promise<void> {
    for (const _ of this.#pods) this.endPod(0, true);
    for (let look = 0; look < 5; look++) {
      await this.settle();
      this.pass(COLLECT_AFTER_MS / 2);
    }
    await this.settle();
    const left = this.cluster.held().filter(({ spec }) => spec.owner?.kind === 'Pod');
    for (const { metadata } of left) this.#violated(`${metadata.name} is held by a deleted pod`);
    this.check();
  }

  #describe(): string {
    const leases = [...this.cluster.server.leases.values()].map(({ metadata: { name }, spec }) => {
      const { owner, containerID, interface: podInterface, releasedAt } = spec;
      return [name, owner?.uid, containerID, podInterface, releasedAt].join(' ');
    });
    const asked = this.agents.map(({ api }) => api.seen.slice(-40).join(', '));
    return [...this.#violations, 'leases:', ...leases, 'last requests:', ...asked].join('\n');
  }

  /** Runs pending work until everything waits for the API server or for time. */
  turn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  #start(node: number): ModelAgent {
    const nodeName = NODES[node]!;
    const random = () => (this.#draws++ * 0.618_033_988_75) % 1;
    const { cluster, clock } = this;
    const known = { nodeBlocks: this.#nodeBlocks, sandboxes: this.#sandboxes };
    return new ModelAgent({ cluster, nodeName, pools: [POOL], clock, random, ...known });
  }

  #agentOf({ pod }: ModelInterface): ModelAgent {
    return this.agents[pod.node]!;
  }

  #begin(each: ModelInterface, work: (signal: AbortSignal) => Promise<void>): void {
    const agent = this.#agentOf(each);
    each.isBusy = true;
    each.abort = new AbortController();
    work(each.abort.signal)
      .catch((error: unknown) => {
        if (!isExpected(error)) this.#violated(String(error));
      })
      .finally(() => {
        if (agent === this.#agentOf(each)) each.isBusy = false;
      });
  }

  #added(each: ModelInterface, grant: Grant): void {
    const addresses = grant.map(({ address }) => formatAddress(address));
    this.grants += 1;
    if (addresses.length !== 2) this.#violated(`${nameOf(each)} was answered ${addresses.join()}`);
    if (each.grant !== undefined && each.grant.join() !== addresses.join()) {
      this.#violated(`${nameOf(each)} was answered ${each.grant.join()}, then ${addresses.join()}`);
    }
    each.grant = addresses;
    this.#report(each, addresses);
  }

  #report({ pod, name }: ModelInterface, ips: readonly string[]): void {
    reportAttachment(this.cluster, pod.name, { interface: name, ips });
  }

  #holds(each: ModelInterface, address: string): boolean {
    const { addressSpace } = each.pod.pool;
    return this.#leasesAt(each).some(({ spec }) => spec.address === address && spec.addressSpace === addressSpace);
  }

  #leasesAt({ pod, container, name }: ModelInterface): AddressLease[] {
    const uid = `${pod.name}-uid`;
    const held = this.cluster.held().filter(({ spec }) => spec.owner?.uid === uid);
    return held.filter(({ spec }) => spec.containerID === container && spec.interface === name);
  }

  #violated(text: string): void {
    if (!this.#violations.includes(text)) this.#violations.push(text);
  }
}

function addressesOf(leases: readonly AddressLease[]): string[] {
  return leases.map(({ spec }) => spec.address);
}
