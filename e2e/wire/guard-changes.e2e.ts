import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { bareAddress } from '../../test/bare-address.js';
import { AttackLoop, portName } from '../../bed/network/guard/attack-loop.js';
import type { PingResult } from '../../bed/network/wire-events.js';
import type { Capture, WireLocation } from '../../bed/network/wire.js';
import { untilValue } from '../../bed/processes/wait.js';
import { describeStory } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import type { Story } from '../../bed/story/story.js';
import { type WireStory, itWithWireStory } from '../../bed/story/wire/wire-story.js';
import type { Pod } from '../../api/pod.js';

const DATA = podInterfaceName('data');
const EXTRA = podInterfaceName('extra');
const GUARD = { guard: { mode: 'Enforce' } };

/** A VM whose guest attacks its network from all its interfaces, and a neighbour that pings the VM and sees what arrives. */
class HostileVm {
  readonly addresses: readonly string[];
  readonly #wire: WireStory;
  readonly #neighbour: WireLocation;
  readonly #capture: Capture;
  readonly #attacks: AttackLoop;

  private constructor(wire: WireStory, addresses: readonly string[], of: HostileVmParts) {
    this.#wire = wire;
    this.addresses = addresses;
    this.#neighbour = of.neighbour;
    this.#capture = of.capture;
    this.#attacks = of.attacks;
  }

  /** Creates `vm1` on the network `blue`. @param octet of its subnets, which no other test uses */
  static async create(story: Story, wire: WireStory, octet: number): Promise<HostileVm> {
    const network = await story.addresses.createNetwork('blue', subnetsOf(octet), GUARD);
    await story.runVm('vm1', { data: 'blue' }, { macs: { data: `02:00:00:74:00:0${octet}` } });
    const addresses = (await story.addresses.waitForIPs('vm1.data')).map(bareAddress);
    await wire.waitForAddresses(await wire.launcher('vm1'), DATA, await story.addresses.waitForIPs('vm1.data'));
    const wires = wire.context.wire.wire;
    const name = `neighbour-${story.namespace}`;
    const [ipv4, ipv6] = [`10.74.${octet}.250`, `fd00:74:${octet}::250`];
    await wires.addHost(name, bridgeOf(network), [`${ipv4}/24`, `${ipv6}/64`]);
    const neighbour: WireLocation = `host/${name}`;
    const [{ mac } = { mac: '' }] = await wires.interfaces(neighbour);
    const capture = await wires.capture(neighbour, 'eth0', '');
    const attacks = new AttackLoop(wires, [DATA, EXTRA], { mac, ipv4, ipv6 });
    const vm = new HostileVm(wire, addresses, { neighbour, capture, attacks });
    await vm.untilReachable();
    return vm;
  }

  /** Pings all addresses of the VM while something happens. */
  async pingedWhile(act: () => Promise<void>): Promise<PingResult[]> {
    const { wire } = this.#wire.context.wire;
    const pings = await Promise.all(
      this.addresses.map((address) => wire.startPing(this.#neighbour, address, { intervalMs: 10 })),
    );
    await act();
    return Promise.all(pings.map((ping) => ping.stop()));
  }

  async untilReachable(): Promise<void> {
    for (const address of this.addresses) {
      await untilValue(
        `${address} to answer always`,
        () => this.#wire.context.wire.wire.ping(this.#neighbour, address),
        ({ lost, duplicates }) => lost === 0 && duplicates === 0,
      );
    }
  }

  /** Waits until all attacks were sent from an interface. */
  async untilAttacked(launcher: Pod, interfaceName: string): Promise<void> {
    const port = portName(this.#wire.context.wire.locationOf(launcher), interfaceName);
    await untilValue(
      `attacks from ${port}`,
      () => Promise.resolve(this.#attacks.attacked),
      (attacked) => attacked.has(port),
    );
  }

  /** Ends the attacks. @returns the names of those that have reached the neighbour */
  async end(): Promise<string[]> {
    await this.#attacks.stop();
    await this.untilReachable(); // all that was sent before has arrived then
    await this.#capture.stop();
    await this.#wire.context.wire.wire.removeHost(this.#neighbour.replace('host/', ''));
    return this.#attacks.among(this.#capture.frames);
  }
}

interface HostileVmParts {
  readonly neighbour: WireLocation;
  readonly capture: Capture;
  readonly attacks: AttackLoop;
}

function subnetsOf(octet: number): string[] {
  return [`10.74.${octet}.0/24`, `fd00:74:${octet}::/64`];
}

function expectNoLoss(pinged: readonly PingResult[]): void {
  for (const { received, lossRuns } of pinged) {
    expect(received).to.be.greaterThan(0);
    expect(lossRuns).to.deep.equal([]);
  }
}

describeStory('A guest that attacks its guarded network without a pause', (story) => {
  itWithWireStory('reaches no neighbour while interfaces are plugged and unplugged', story, async (wire) => {
    const vm = await HostileVm.create(story(), wire, 1);
    const launcher = await wire.launcher('vm1');
    const pinged = await vm.pingedWhile(async () => {
      await story().plugInterface('vm1', 'extra', 'blue');
      await story().waitAttached('vm1', 'extra');
      await vm.untilAttacked(launcher, EXTRA);
      await story().unplugInterface('vm1', 'extra');
      await story().waitDetached('vm1', 'extra');
    });
    expect(await vm.end()).to.deep.equal([]);
    expectNoLoss(pinged);
  });

  itWithWireStory('reaches no neighbour while the agent restarts, and through a new sandbox', story, async (wire) => {
    const vm = await HostileVm.create(story(), wire, 2);
    const launcher = await wire.launcher('vm1');
    const agent = wire.context.agents.on(launcher.spec!.nodeName!);
    await vm.untilAttacked(launcher, DATA);
    const pinged = await vm.pingedWhile(async () => {
      await agent.kill();
      await agent.start();
    });
    await wire.context.wire.restartSandbox(launcher);
    await vm.untilReachable();
    await vm.untilAttacked(launcher, DATA);
    expect(await vm.end()).to.deep.equal([]);
    expectNoLoss(pinged);
  });

  itWithWireStory('reaches no neighbour while it migrates, and loses nothing before it moves', story, async (wire) => {
    const vm = await HostileVm.create(story(), wire, 3);
    const source = await wire.launcher('vm1');
    const copy = wire.context.bed.switches.set({ migration: 'hold' }, { namespace: story().namespace });
    let migration = '';
    const pinged = await vm.pingedWhile(async () => {
      migration = await story().migrations.start('vm1');
      await story().migrations.waitCopying(migration);
      const target = (await story().launchers('vm1')).find(({ metadata }) => metadata.uid !== source.metadata.uid);
      await vm.untilAttacked(target!, DATA);
    });
    copy();
    expect(await story().migrations.waitEnded(migration)).to.equal('Succeeded');
    await vm.untilReachable();
    expect(await vm.end()).to.deep.equal([]);
    expectNoLoss(pinged);
  });
});

describeStory('A guest that attacks its guarded network while its NAD is swapped', (story) => {
  beforeEach(async function () {
    if (!(await story().hasFeatureGate('LiveUpdateNADRef'))) this.skip();
  });

  itWithWireStory('reaches no neighbour', story, async (wire) => {
    const vm = await HostileVm.create(story(), wire, 4);
    const subnets = subnetsOf(4).map((cidr) => ({ cidr }));
    await story().network('blue-too', { network: `${story().namespace}-blue`, subnets, ipam: GUARD });
    const before = await story().waitRunning('vm1');
    await story().swapNetwork('vm1', 'data', 'blue-too');
    await story().migrations.waitMovedFrom('vm1', before);
    await vm.untilReachable();
    await vm.untilAttacked(await wire.launcher('vm1'), DATA);
    expect(await vm.end()).to.deep.equal([]);
  });
});
