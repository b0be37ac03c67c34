import { expect } from 'chai';
import { capacityResource } from '../../api/capacity.js';
import { podInterfaceName } from '../../api/pod.js';
import { ADDRESS_LEASES, NODES } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import type { Bed } from '../../bed/bed.js';
import type { BedWire } from '../../bed/node/bed-wire.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { AgentPods, NET1, pendingDeletesOn } from '../../bed/faults/agent-pods.js';
import { leaseNamed } from '../../bed/story/addresses.js';
import { BlockStory } from '../../bed/story/blocks.js';
import type { Story } from '../../bed/story/story.js';
import { waitForWireAddresses } from '../../bed/story/wire/wire-addresses.js';

/** The VMs that exist all the time, with what happens to them. */
const VMS = { stays: 'nothing', moves: 'migrates', restarts: 'restarts', halts: 'stops and starts' } as const;
type VmName = keyof typeof VMS;
const VM_NAMES = Object.keys(VMS) as VmName[];

const DATA = podInterfaceName('data');
const STICKY_MAC = '02:00:00:00:90:01';
const RESERVED_MAC = '02:00:00:00:90:02';
const RESERVED = '10.90.1.77';
const ADMIN_POOL = 'upgrade-office';

/** The networks: `blue` has a derived pool with two families, `office` one of an administrator, `slices` blocks, `sticky` MAC addresses. */
interface Networks {
  readonly blue: string;
  readonly office: string;
  readonly slices: string;
  readonly sticky: string;
}

/** VMs and pods that use all features of Holdfast, and what their owners do with them. */
export class Workloads {
  readonly networks: Networks;
  readonly #story: Story;
  readonly #bed: Bed;
  readonly #wire: BedWire;
  readonly #pods: AgentPods;
  /** By VM: its addresses when it was created, with prefix lengths. */
  readonly #addresses = new Map<VmName, readonly string[]>();
  #stickyAddresses: readonly string[] = [];
  #round = 0;
  #isHalted = true;

  private constructor(story: Story, bed: Bed, wire: BedWire, networks: Networks) {
    this.#story = story;
    this.#bed = bed;
    this.#wire = wire;
    this.#pods = new AgentPods(story, wire);
    this.networks = networks;
  }

  static async create(story: Story, bed: Bed, wire: BedWire): Promise<Workloads> {
    const { addresses } = story;
    const office = `${story.namespace}-office`;
    const subnets = [{ cidr: '10.90.1.0/24' }];
    // before the NAD, because ipam warns about a network without a pool
    await addresses.createPool(ADMIN_POOL, { network: office, subnets, publishCapacity: true });
    await addresses.waitForPool(ADMIN_POOL, 'to be observed', ({ status }) => status !== undefined);
    const reservation = leaseNamed(office, RESERVED, { pool: ADMIN_POOL });
    const spec = { ...reservation.spec, mac: RESERVED_MAC };
    await bed.client.create(ADDRESS_LEASES, { metadata: { name: reservation.metadata.name }, spec });
    const workloads = new Workloads(story, bed, wire, {
      office: await addresses.createNetwork('office', []),
      blue: await addresses.createNetwork('blue', ['10.90.0.0/24', 'fd00:90::/64']),
      slices: await addresses.createNetwork('slices', ['10.90.2.0/24'], { blockSize: { ipv4: 29 } }),
      sticky: await addresses.createNetwork('sticky', ['10.90.3.0/24'], { stickyMAC: { ttl: '10m' } }),
    });
    await workloads.#createVms();
    return workloads;
  }

  async #createVms(): Promise<void> {
    await Promise.all(
      VM_NAMES.map(async (name) => {
        const running = name !== 'halts';
        const macs = name === 'restarts' ? { office: RESERVED_MAC } : {};
        await this.#story.createVm(name, { data: 'blue', office: 'office' }, { running, macs });
        this.#addresses.set(name, await this.#claimed(name));
        if (running) await this.#waitOnWire(name);
      }),
    );
    expect(await this.#story.addresses.waitForIPs('restarts.office')).to.deep.equal([`${RESERVED}/24`]);
    await this.#runPods();
    await this.#recreateSticky();
  }

  /** Lets everything happen that owners of VMs and pods do, and checks that all addresses stay the same. */
  async exercise(): Promise<void> {
    this.#round++;
    const before = await this.#undisturbed();
    await Promise.all([
      this.#story.migrate('moves', 'Succeeded'),
      this.#story.restart('restarts'),
      this.#haltOrStart(),
      this.#replaceVm(),
      this.#runPods(),
      this.#recreateSticky(),
    ]);
    await Promise.all([...this.#addresses.keys()].map((name) => this.#checkVm(name)));
    expect(await this.#undisturbed()).to.deep.equal(before);
    await this.#checkCapacity();
  }

  /** A pod that ends while no agent runs on its node. @returns waits until its address is free */
  async endPod(node: string): Promise<() => Promise<void>> {
    const name = `${node}-${String(this.#round)}`;
    const [address] = await this.#pods.waitRunning(name);
    const { containerId } = this.#wire.sandboxOf(await this.#pods.get(name));
    await this.#pods.delete(name);
    await this.#pods.waitGone(name);
    expect(await this.#story.addresses.heldAddresses()).to.include(address);
    expect(pendingDeletesOn(this.#bed, node)).to.include(`${containerId}-${NET1}.json`);
    return async () => {
      const held = () => this.#story.addresses.heldAddresses();
      await untilValue(`${address ?? ''} to be free`, held, (addresses) => !addresses.includes(address ?? ''));
    };
  }

  /** A pod that is created while no agent runs on its node. @returns waits until it runs */
  async beginPod(node: string): Promise<() => Promise<void>> {
    const name = `${node}-waits-${String(this.#round)}`;
    await this.#pods.create(name, node, 'slices');
    await this.#story.waitForEvent(name, 'FailedCreatePodSandBox');
    return async () => {
      expect(await this.#pods.waitRunning(name)).to.have.length(1);
      await this.#pods.delete(name);
    };
  }

  /** Deletes everything but networks and pools, and waits until all addresses are free. */
  async end(): Promise<void> {
    const { client } = this.#story;
    const vms = [...VM_NAMES, `new-${String(this.#round)}`];
    await Promise.all(vms.map((name) => this.#story.deleteVm(name, 'Background')));
    const pods = [...this.#bed.nodes.map((node) => `${node}-${String(this.#round)}`), 'sticky'];
    await Promise.all(pods.map((name) => this.#pods.delete(name)));
    await this.#story.waitForClaims([]);
    await this.#story.addresses.waitHeld([]);
    const reservation = leaseNamed(this.networks.office, RESERVED, { pool: ADMIN_POOL });
    const find = () => client.find(ADDRESS_LEASES, { name: reservation.metadata.name });
    await untilValue(
      `${RESERVED} to be reserved again`,
      find,
      (lease) => lease !== undefined && lease.spec.owner === undefined,
    );
    await client.delete(ADDRESS_LEASES, { name: reservation.metadata.name });
  }

  async #haltOrStart(): Promise<void> {
    if (this.#isHalted) await this.#story.start('halts');
    else await this.#story.stop('halts');
    this.#isHalted = !this.#isHalted;
  }

  /** Creates a VM, and deletes that of the round before. */
  async #replaceVm(): Promise<void> {
    const name = `new-${String(this.#round)}`;
    const before = `new-${String(this.#round - 1)}`;
    await this.#story.createVm(name, { data: 'blue' });
    if (this.#round > 1) {
      await this.#story.deleteVm(before, 'Background');
      await this.#story.claims.waitGone(`${before}.data`);
    }
    await this.#claimed(name);
    await this.#waitOnWire(name);
  }

  /** Creates a pod on each node, and deletes those of the round before. */
  async #runPods(): Promise<void> {
    await Promise.all(
      this.#bed.nodes.map(async (node) => {
        const name = `${node}-${String(this.#round)}`;
        await this.#pods.create(name, node, 'slices');
        expect(await this.#pods.waitRunning(name)).to.have.length(1);
        const before = `${node}-${String(this.#round - 1)}`;
        if (this.#round > 0) {
          await this.#pods.delete(before);
          await this.#pods.waitGone(before);
        }
      }),
    );
  }

  /** Deletes the pod with a sticky address, and creates it on another node. */
  async #recreateSticky(): Promise<void> {
    if (this.#round > 0) {
      await this.#pods.delete('sticky');
      await this.#pods.waitGone('sticky');
    }
    const node = this.#bed.nodes[this.#round % this.#bed.nodes.length] ?? '';
    await this.#pods.create('sticky', node, JSON.stringify([{ name: 'sticky', mac: STICKY_MAC }]));
    const addresses = await this.#pods.waitRunning('sticky');
    if (this.#round === 0) this.#stickyAddresses = addresses;
    expect(addresses).to.deep.equal(this.#stickyAddresses);
  }

  async #claimed(vm: string): Promise<string[]> {
    return this.#story.addresses.waitForIPs(`${vm}.data`);
  }

  async #checkVm(name: VmName): Promise<void> {
    expect(await this.#claimed(name), `addresses of the claim of ${name}`).to.deep.equal(this.#addresses.get(name));
    if (name !== 'halts' || !this.#isHalted) await this.#waitOnWire(name);
  }

  /** Waits until the guest's interface has the addresses of its claim. */
  async #waitOnWire(vm: string): Promise<void> {
    await this.#story.waitRunning(vm);
    const addresses = await this.#claimed(vm);
    await until(`${vm} to be on the wire`, async () => {
      const [launcher] = await this.#story.launchers(vm);
      const attachment = { interface: DATA, addresses };
      await waitForWireAddresses({ client: this.#bed.client, wire: this.#wire }, launcher!, attachment);
      return true;
    });
  }

  /** What identifies the VM to which nothing happens: its launcher, its sandbox, and the versions of its leases. */
  async #undisturbed(): Promise<unknown> {
    const [launcher] = await this.#story.launchers('stays');
    const leases = await this.#story.addresses.leases();
    const addresses = (await this.#claimed('stays')).map(bareAddress);
    return {
      launcher: launcher?.metadata.uid,
      sandbox: launcher && this.#wire.sandboxOf(launcher).containerId,
      leases: addresses.map((address) => leases.get(address)?.metadata.uid),
    };
  }

  async #checkCapacity(): Promise<void> {
    const resource = capacityResource(ADMIN_POOL);
    await until(`a node to advertise ${resource}`, async () => {
      const items = (await this.#bed.client.list(NODES)).items as { status?: { allocatable?: object } }[];
      return items.some(({ status }) => resource in (status?.allocatable ?? {}));
    });
  }

  /** Waits until each node has a block. */
  async waitForBlocks(): Promise<void> {
    const { metadata } = await this.#story.addresses.waitForDerivedPool(this.networks.slices);
    const blocks = new BlockStory(this.#bed.client, metadata.name);
    for (const node of this.#bed.nodes) await blocks.waitAssigned(node, (count) => count > 0);
  }
}
