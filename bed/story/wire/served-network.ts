import { randomBytes } from 'node:crypto';
import { after, before } from 'mocha';
import type { AddressPoolSpec, GuestOptions } from '../../../api/address-pool.js';
import { RESPONDERS_NAMESPACE } from '../../../api/names.js';
import { ADDRESS_POOLS, NETWORK_ATTACHMENT_DEFINITIONS } from '../../../kube/resources.js';
import { DhcpClients } from '../../network/dhcp-clients.js';
import type { WireLocation } from '../../network/wire.js';
import { guestLocation } from '../../node/wired-guests.js';
import { until, untilValue } from '../../processes/wait.js';
import { HoldfastProcess } from '../../holdfast/process.js';
import { type Responder, Responders } from '../../holdfast/responders.js';
import { requireWire, type WireContext } from '../describe.js';
import { bridgeOf } from '../networks.js';
import { admitted } from '../patience.js';
import type { Story } from '../story.js';

/** What networks with responders need; one of it serves all of them. */
export interface DhcpServices extends WireContext {
  /** The process `guest`, which makes the responders' pods. */
  readonly guest: HoldfastProcess;
  readonly responders: Responders;
  readonly clients: DhcpClients;
}

/** The image of responders, of which the bed runs none. */
export const RESPONDER_IMAGE = '--responder-image=registry.test/holdfast';

/** A layer-2 network with an administrator's pool for all namespaces, whose guests two responders answer. */
export class ServedNetwork {
  /** The name of the CNI network, of the pool, and of the responders' NAD. */
  readonly name = `dhcp-${randomBytes(4).toString('hex')}`;
  /** Also the name of the segment. */
  readonly bridge = bridgeOf(this.name);
  readonly services: DhcpServices;

  private constructor(services: DhcpServices) {
    this.services = services;
  }

  /** The responders may not run yet. */
  static async create(services: DhcpServices, spec: Omit<AddressPoolSpec, 'network'>): Promise<ServedNetwork> {
    const { probe = false, ...guest } = spec.guest ?? {}; // only responders probe
    const network = await ServedNetwork.createWithoutResponders(services, { ...spec, guest });
    await network.serve({ probe });
    return network;
  }

  /** Its guests have addresses, and nobody answers them before {@link serve}. */
  static async createWithoutResponders(
    services: DhcpServices,
    spec: Omit<AddressPoolSpec, 'network'>,
  ): Promise<ServedNetwork> {
    const network = new ServedNetwork(services);
    const { name } = network;
    const pool = { metadata: { name }, spec: { guest: {}, ...spec, network: name } };
    await admitted(() => services.bed.client.create(ADDRESS_POOLS, pool));
    return network;
  }

  /** Starts the responders. They may not run yet. */
  async serve(options: Pick<GuestOptions, 'probe'> = {}): Promise<void> {
    const { name, bridge } = this;
    const silent = { type: 'tuning', sysctl: { 'net.ipv6.conf.IFNAME.disable_ipv6': '1' } };
    const config = { cniVersion: '1.0.0', name, plugins: [{ type: 'bridge', bridge }, silent] };
    await this.services.bed.client.create(NETWORK_ATTACHMENT_DEFINITIONS, {
      metadata: { namespace: RESPONDERS_NAMESPACE, name },
      spec: { config: JSON.stringify(config) },
    });
    await this.edit({ guest: { attachment: name, dhcp: {}, ...options } });
  }

  /** Creates a NAD for VMs. */
  async attach(story: Story, nad: string): Promise<void> {
    const plugin = { type: 'bridge', bridge: this.bridge, disableContainerInterface: true };
    await story.network(nad, { config: { cniVersion: '1.0.0', name: this.name, ...plugin, allowPersistentIPs: true } });
  }

  /** Creates a VM on a NAD, and waits until it runs. Its interface is called `data` in the VM, and eth1 in the guest. */
  async startGuest(
    story: Story,
    name: string,
    nad: string,
    mac: string,
  ): Promise<{ guest: WireLocation; ips: string[] }> {
    const vmi = await story.runVm(name, { data: nad }, { macs: { data: mac } });
    return { guest: guestLocation(vmi), ips: await story.addresses.waitForIPs(`${name}.data`) };
  }

  /** Waits until both responders run. */
  async untilServed(): Promise<Responder[]> {
    const { responders } = this.services;
    const pods = await untilValue(
      `two responders of ${this.name}`,
      () => responders.pods(this.name),
      (found) => found.length === 2,
    );
    return Promise.all(pods.map((pod) => responders.of(pod)));
  }

  /** Waits until the tables of both responders have so many guests. */
  async untilGuests(count: number): Promise<void> {
    const responders = await this.untilServed();
    await untilValue(
      `${count} guests in the tables`,
      () => Promise.all(responders.map(async ({ table }) => entriesOf(await table.metrics()))),
      (entries) => entries.every((known) => known === count),
    );
  }

  /** Changes the pool by a merge patch of its spec. */
  async edit(spec: object): Promise<void> {
    const patch = { type: 'merge', body: { spec } } as const;
    await admitted(() => this.services.bed.client.patch(ADDRESS_POOLS, { name: this.name }, patch));
  }

  /** Deletes the pool, which ends its responders. Its guests must be gone, or going. Idempotent. */
  async remove(): Promise<void> {
    const { bed, responders } = this.services;
    await until(`pool ${this.name} to be gone`, async () => {
      await bed.client.delete(ADDRESS_POOLS, { name: this.name }); // it is rejected while claims of guests have addresses
      return (await bed.client.find(ADDRESS_POOLS, { name: this.name })) === undefined;
    });
    await until('the responders to be gone', () => responders.pods(this.name).length === 0);
    await bed.client.delete(NETWORK_ATTACHMENT_DEFINITIONS, { namespace: RESPONDERS_NAMESPACE, name: this.name });
  }
}

/** Runs one network with responders for all tests of a suite. Skips the tests if pods have no real networks, or there are no clients. */
export function useServedNetwork(spec: Omit<AddressPoolSpec, 'network'>): () => ServedNetwork {
  let services: DhcpServices | undefined;
  let network: ServedNetwork | undefined;

  before('start guest and responders', async function () {
    const context = requireWire(this);
    const clients = await DhcpClients.find();
    if (typeof clients === 'string') {
      console.log(`    ${clients}`);
      this.skip();
    }
    const { bed, wire } = context;
    const guest = new HoldfastProcess(bed, 'guest', bed.controller.ports);
    services = { ...context, guest, responders: new Responders({ ...bed, wire }), clients };
    await Promise.all([services.responders.start(), guest.start({ args: [RESPONDER_IMAGE] })]);
    network = await ServedNetwork.create(services, spec);
    await network.untilServed();
  });

  after('stop guest and responders', async () => {
    try {
      await network?.remove();
    } finally {
      await services?.guest.stop();
      await services?.responders.stop();
    }
  });

  return () => {
    if (network === undefined) throw new Error('a network with responders exists only while tests run');
    return network;
  };
}

function entriesOf(metrics: string): number {
  return Number(/^holdfast_responder_table_entries\{.*\} (\d+)$/m.exec(metrics)?.[1]);
}
