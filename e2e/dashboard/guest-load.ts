import { NETWORK_DATA_ANNOTATION } from '../../api/names.js';
import { DhcpClients, type RunningClient } from '../../bed/network/dhcp-clients.js';
import { guestLocation } from '../../bed/node/wired-guests.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { HoldfastProcess } from '../../bed/holdfast/process.js';
import { Responders } from '../../bed/holdfast/responders.js';
import { RESPONDER_IMAGE, ServedNetwork } from '../../bed/story/wire/served-network.js';
import type { Story } from '../../bed/story/story.js';
import type { Target } from './prometheus.js';

const SUBNETS = [{ cidr: '10.91.0.0/24' }, { cidr: 'fd00:91::/64' }];
const UNWRITTEN = 'without-mac';

/** A layer-2 network with responders, and a guest that renews its lease. */
export class GuestLoad {
  readonly #network: ServedNetwork;
  readonly #tables: readonly HoldfastProcess[];
  #client: RunningClient | undefined;

  private constructor(network: ServedNetwork, tables: readonly HoldfastProcess[]) {
    this.#network = network;
    this.#tables = tables;
  }

  /** @returns undefined on a machine without network namespaces or DHCP clients */
  static async start(bed: BedWithHoldfast, env: Readonly<Record<string, string>>): Promise<GuestLoad | undefined> {
    const { wire, agents } = bed;
    const clients = await DhcpClients.find();
    if (wire === undefined || agents === undefined || typeof clients === 'string') return undefined;
    const guest = new HoldfastProcess(bed, 'guest', bed.controller.ports);
    const responders = new Responders({ ...bed, wire });
    await Promise.all([responders.start(), guest.start({ args: [RESPONDER_IMAGE], env })]);
    const services = { bed, wire, agents, guest, responders, clients };
    const network = await ServedNetwork.create(services, {
      subnets: SUBNETS,
      cooldownSeconds: 0,
      guest: { probe: true },
    });
    return new GuestLoad(
      network,
      (await network.untilServed()).map(({ table }) => table),
    );
  }

  get targets(): Target[] {
    return [
      { job: 'guest', port: this.#network.services.guest.metricsPort },
      ...this.#tables.map(({ metricsPort }, index) => ({
        job: `responder-${index}`,
        port: metricsPort,
        scheme: 'http' as const,
      })),
    ];
  }

  /** Creates a VM whose guest asks by DHCP, and one whose network data cannot be written. */
  async begin(story: Story): Promise<void> {
    const { clients, wire } = this.#network.services;
    await this.#network.attach(story, 'flat');
    const annotations = { [NETWORK_DATA_ANNOTATION]: UNWRITTEN };
    const extras = { annotations, networkData: { secret: UNWRITTEN }, running: false };
    await story.createVm(UNWRITTEN, { data: 'flat' }, extras);
    await story.createVm('guest', { data: 'flat' }, { macs: { data: '02:00:00:00:91:01' } });
    const guest = guestLocation(await story.waitRunning('guest'));
    this.#client = await clients.start(wire.wire, guest, 'udhcpc', 'eth1');
    await this.#client.waitForLease();
  }

  async renew(): Promise<void> {
    await this.#client?.command.signal('SIGUSR1');
  }

  async stop(story: Story): Promise<void> {
    await this.#client?.command.stop();
    for (const name of ['guest', UNWRITTEN]) await story.deleteVm(name, 'Background');
    for (const name of ['guest', UNWRITTEN]) await story.waitGone(name);
    await this.#network.remove();
    const { guest, responders } = this.#network.services;
    await guest.stop();
    await responders.stop();
  }
}
