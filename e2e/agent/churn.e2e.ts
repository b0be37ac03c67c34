import { expect } from 'chai';
import { type Pod, controllingVmi, isLauncher, isTerminal, podInterfaceName } from '../../api/pod.js';
import { systemClock } from '../../kube/clock.js';
import { PODS } from '../../kube/resources.js';
import { PodObserver } from '../../bed/faults/pod-observer.js';
import { AgentPods, NET1 } from '../../bed/faults/agent-pods.js';
import { describeStory, requireWire, type WireContext } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { ClaimLeaseObserver } from '../../bed/story/claim-lease-observer.js';
import type { Story } from '../../bed/story/story.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import * as vm from '../../bed/story/vms/vm.js';
import { patiently } from '../../bed/story/patience.js';

const POD_COUNT = 60;
const VM_COUNT = 20;
const VMS = Array.from({ length: VM_COUNT }, (_, index) => `vm${String(index)}`);
const CHURN_MS = 60_000;
const KILL_EVERY_MS = 5_000;
const COOLDOWN_MS = 1_000; // twice the --max-staleness of the bed
const PATIENCE = { timeoutMs: 180_000 };
const PAUSE_MS = 200;
const DATA = podInterfaceName('data');
/** Address of the host that sends probes. */
const PROBER = '10.67.0.250';

describeStory('60 pods and 20 VMs that are created and deleted on one network', (story) => {
  it('never share or lose an address although agents and the API server are killed', async function () {
    this.timeout(15 * 60_000);
    const on = requireWire(this);
    const space = await story().addresses.createNetwork('blue', [{ cidr: '10.67.0.0/24', exclude: [PROBER] }]);
    const scope = { space, cooldownMs: COOLDOWN_MS, namespace: story().namespace };
    const [observer, podObserver] = [
      new ClaimLeaseObserver(on.bed.client, scope),
      new PodObserver(on.bed.client, scope),
    ];
    observer.start();
    podObserver.start();
    let kills: number;
    let wanted: string[];
    let ofPods: string[];
    try {
      const crowd = new Crowd(story(), on);
      await crowd.begin();
      kills = await whileAgentsDie(on, () => crowd.churn(CHURN_MS, () => restartApiServer(on)));
      wanted = await crowd.settled();
    } finally {
      // stop all watches, even after a failure
      [, ofPods] = await Promise.all([observer.stop(), podObserver.stop()]);
    }
    expect([...observer.violations, ...ofPods].slice(0, 10).join('\n')).to.equal('');
    expect(podObserver.releases).to.be.greaterThan(20);
    expect(kills).to.be.greaterThan(5);
    await answeredOnce(on, bridgeOf(space), wanted);
  });
});

async function restartApiServer({ bed }: WireContext): Promise<void> {
  await bed.apiServer.kill();
  await bed.apiServer.start();
}

/** @returns the number of kills */
async function whileAgentsDie(on: WireContext, act: () => Promise<void>): Promise<number> {
  const stop = new AbortController();
  const killing = killInTurn(on, stop.signal);
  try {
    await act();
  } finally {
    stop.abort();
    await killing;
  }
  return killing;
}

class Crowd {
  readonly #story: Story;
  readonly #pods: AgentPods;
  readonly #nodes: readonly string[];
  readonly #names: string[] = [];
  #made = 0;
  #moves = 0;
  #arePaused = false;

  constructor(story: Story, { bed, wire }: WireContext) {
    this.#story = story;
    this.#pods = new AgentPods(story, wire);
    this.#nodes = bed.nodes;
  }

  async begin(): Promise<void> {
    await Promise.all(VMS.map((name) => this.#story.createVm(name, { data: 'blue' })));
    for (let count = 0; count < POD_COUNT; count++) await this.#come();
    await this.settled();
  }

  async churn(durationMs: number, halfWay: () => Promise<void>): Promise<void> {
    const end = Date.now() + durationMs;
    const lanes = [0, 1, 2, 3];
    const trouble = systemClock.sleep(durationMs / 2).then(() => this.#withoutMoves(halfWay));
    await Promise.all([
      ...lanes.map((lane) => this.#moveVms(lane, end)),
      ...lanes.map(() => this.#replacePods(end)),
      trouble,
    ]);
  }

  /** Waits until the addresses of all pods and VMs are exactly the leased ones. @returns all addresses */
  async settled(): Promise<string[]> {
    const { addresses } = await untilValue(
      'all pods to have their leased addresses',
      () => this.#look(),
      ({ addresses: all, held, missing }) => missing.length === 0 && all.join() === held.join(),
      { ...PATIENCE, everyMs: 1_000 },
    );
    return addresses;
  }

  async #look() {
    const { items } = await this.#story.client.list(PODS, { namespace: this.#story.namespace });
    const living = items.filter((pod) => !isTerminal(pod) && pod.metadata.deletionTimestamp === undefined);
    const onWire = await Promise.all(living.map((pod) => this.#pods.waitForInterface(pod, interfaceOf(pod))));
    const claims = await Promise.all(living.filter(isLauncher).map((pod) => this.#claimed(pod)));
    const ofLaunchers = living.flatMap((pod, index) => (isLauncher(pod) ? [onWire[index]!.join()] : []));
    if (claims.join() !== ofLaunchers.join())
      throw new Error(`claims have ${claims.join()}, VMs ${ofLaunchers.join()}`);
    const [addresses, held] = [onWire.flat().sort(), await this.#story.addresses.heldAddresses()];
    const names = new Set(living.filter((_, index) => onWire[index]!.length === 1).map(nameOf));
    const missing = [...VMS, ...this.#names].filter((name) => !names.has(name));
    return {
      addresses,
      held,
      unleased: addresses.filter((address) => !held.includes(address)),
      unused: held.filter((address) => !addresses.includes(address)),
      missing,
      parts: await Promise.all(missing.map((name) => vm.partsOf(this.#story.client, this.#story.ref(name)))),
    };
  }

  async #claimed(launcher: Pod): Promise<string> {
    const { name = '' } = launcher.metadata.ownerReferences?.[0] ?? {};
    const { status } = await this.#story.waitForClaim(`${name}.data`);
    return (status?.ips ?? []).map((ip) => ip.replace(/\/.*/, '')).join();
  }

  async #replacePods(end: number): Promise<void> {
    while (Date.now() < end) {
      const name = this.#names.shift() ?? '';
      await patiently(() => this.#pods.delete(name), PATIENCE);
      await this.#come();
      await until(`pod ${name} to be gone`, () => this.#isGone(name), PATIENCE);
    }
  }

  async #moveVms(lane: number, end: number): Promise<void> {
    for (let round = 0; Date.now() < end; round++) {
      const name = `vm${String((lane + round * 4) % VM_COUNT)}`;
      const ref = this.#story.ref(name);
      await until(`${name} to run`, () => vm.waitRunning(this.#story.client, ref), PATIENCE);
      if (this.#arePaused) {
        await systemClock.sleep(PAUSE_MS);
        continue;
      }
      this.#moves++;
      try {
        await (round % 2 === 0 ? this.#migrate(name) : this.#restart(name));
      } finally {
        this.#moves--;
      }
    }
  }

  async #migrate(name: string): Promise<void> {
    const migration = await patiently(() => this.#story.migrations.start(name), PATIENCE);
    await until(`migration ${migration} to end`, () => this.#story.migrations.waitEnded(migration), PATIENCE);
  }

  async #restart(name: string): Promise<void> {
    const ref = this.#story.ref(name);
    const before = await vm.waitRunning(this.#story.client, ref);
    await patiently(() => vm.callSubresource(this.#story.client, ref, 'restart'), PATIENCE);
    await until(`${name} to run again`, () => this.#story.waitReplaced(name, before), PATIENCE);
  }

  /** Waits for migrations before the API server stops, because KubeVirt may leave them unfinished for minutes. */
  async #withoutMoves(act: () => Promise<void>): Promise<void> {
    this.#arePaused = true;
    await until('moves to end', () => this.#moves === 0, PATIENCE);
    await act();
    this.#arePaused = false;
  }

  async #come(): Promise<void> {
    const name = `pod${String(this.#made++)}`;
    const node = this.#nodes[this.#made % this.#nodes.length] ?? '';
    this.#names.push(name);
    await patiently(() => this.#pods.create(name, node), PATIENCE);
  }

  async #isGone(name: string): Promise<boolean> {
    return (await this.#story.client.find(PODS, this.#story.ref(name))) === undefined;
  }
}

/** That of its VM if it is a launcher. */
function nameOf(pod: Pod): string {
  return controllingVmi(pod)?.name ?? pod.metadata.name;
}

function interfaceOf(pod: Pod): string {
  return isLauncher(pod) ? DATA : NET1;
}

/** Probes each address from a host on the network: exactly one MAC address must answer. */
async function answeredOnce({ bed, wire: { wire } }: WireContext, segment: string, addresses: string[]): Promise<void> {
  await wire.join(bed.nodes[0]!, segment);
  await wire.addHost('prober', segment, [`${PROBER}/24`]);
  try {
    const watch = await wire.watch('host/prober', 'eth0');
    for (const address of addresses) {
      const { received, duplicates } = await wire.ping('host/prober', address, { count: 2, timeoutMs: 2_000 });
      expect({ address, received, duplicates }).to.deep.equal({ address, received: 2, duplicates: 0 });
    }
    await watch.stop();
    const macs = new Map<string, Set<string>>();
    for (const { frame } of watch.events) {
      if (frame?.kind !== 'arp-reply' || frame.ip === undefined || frame.outgoing) continue;
      macs.set(frame.ip, (macs.get(frame.ip) ?? new Set()).add(frame.mac));
    }
    expect([...macs.keys()].sort()).to.deep.equal([...addresses].sort());
    for (const [address, found] of macs) expect([...found], address).to.have.length(1);
    expect(new Set([...macs.values()].flatMap((found) => [...found])).size).to.equal(addresses.length);
  } finally {
    await wire.removeHost('prober');
  }
}

/** @returns the number of kills */
async function killInTurn({ agents }: WireContext, signal: AbortSignal): Promise<number> {
  let kills = 0;
  while (!signal.aborted) {
    await systemClock.sleep(KILL_EVERY_MS, signal);
    const agent = agents.all[kills++ % agents.all.length]!;
    await agent.kill();
    await patiently(() => agent.launch(), PATIENCE);
  }
  await Promise.all(agents.all.map((agent) => agent.waitReady()));
  return kills;
}
