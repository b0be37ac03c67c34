import { join } from 'node:path';
import { expect } from 'chai';
import { DhcpClients, type DhcpClientName, type Lease } from './bed/network/dhcp-clients.js';
import type { Wire, WireLocation } from './bed/network/wire.js';
import { PacketTable, startPackets } from './holdfast/packets.js';
import { requireWire } from './story/describe.js';
import { untilValue } from './bed/wait.js';

const SEGMENT = 'br-clients';
const CLIENTS: readonly DhcpClientName[] = ['udhcpc', 'dhclient', 'dhcpcd', 'systemd-networkd'];
const CONFIG = {
  v: 1,
  interface: 'eth0',
  server: { ipv4: '10.76.0.2', duid: '0004000102030405060708090a0b0c0d0e0f' },
  subnets: [{ cidr: '10.76.0.0/24' }],
  peers: [],
  times: { renew: 300, rebind: 600, lease: 86_400, advertise: 300 },
};
const OPTIONS = {
  id: 'blue',
  mtu: 1400,
  dns: ['10.76.0.53'],
  search: ['blue.test', 'green.test'],
  ntp: ['10.76.0.123'],
  routes: [{ destination: '172.31.0.0/16', gateway: '10.76.0.9' }],
};
const EXPECTED = { dns: '10.76.0.53', mtu: '1400', ntp: '10.76.0.123', seconds: '86400' };

/** Real clients and holdfast-packets on a real segment, with a table of the test. */
describe('DHCP clients of a segment', function () {
  this.timeout(60_000);
  let wire: Wire;
  let clients: DhcpClients;
  let table: PacketTable;
  const hosts: string[] = [];

  before('start holdfast-packets', async function () {
    const context = requireWire(this);
    const found = await DhcpClients.find();
    if (typeof found === 'string') {
      console.log(`    ${found}`);
      this.skip();
    }
    ({ wire } = context.wire);
    clients = found;
    const responder = await addHost('responder');
    const disable = 'echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6'; // the server's kernel has no address
    await wire.run(responder, { command: '/bin/sh', args: ['-c', disable] });
    const socket = join(context.bed.dataDir, 'packets.sock');
    await startPackets(wire, responder, socket);
    table = await PacketTable.connect(socket);
    table.send({ config: CONFIG }, { snapshot: 'begin' }, { options: OPTIONS });
    table.send({ put: CLIENTS.map((_, index) => entryOf(index, 'blue')) }, { snapshot: 'end' });
    table.send({ fresh: { forMs: 600_000 } });
  });

  after('remove the hosts', async () => {
    for (const name of hosts) await wire.removeHost(name);
  });

  for (const [index, name] of CLIENTS.entries()) {
    it(`such as ${name} get address, routes, name servers, search domains, NTP servers and MTU`, async function () {
      if (!clients.has(name)) this.skip();
      const guest = await addGuest(name, index);
      const client = await clients.start(wire, guest, name);
      const { search = '', ...lease } = await client.waitForLease();
      expect(lease).to.deep.equal({ ip: addressOf(index), ...EXPECTED });
      expect(search.replaceAll(/\.( |$)/g, '$1')).to.equal('blue.test green.test');
      const routes = await routesOf(guest);
      expect(routes).to.match(/^default via 10\.76\.0\.1 dev eth0/m);
      expect(routes).to.match(/^172\.31\.0\.0\/16 via 10\.76\.0\.9 dev eth0/m);
      const [eth0] = await wire.interfaces(guest);
      expect(eth0?.addresses.map(({ address }) => address)).to.include(`${addressOf(index)}/24`);
      await client.command.stop();
    });
  }

  it('get changed options when they renew, and another address by starting again', async () => {
    const guest = await addGuest('renewing', 8);
    table.send({ put: [entryOf(8, 'blue')] });
    const client = await clients.start(wire, guest, 'udhcpc');
    expect((await client.waitForLease()).dns).to.equal('10.76.0.53');
    table.send({ options: { ...OPTIONS, id: 'green', dns: ['10.76.0.54'] } }, { put: [entryOf(8, 'green')] });
    await client.command.signal('SIGUSR1');
    const renewed = await client.waitForLease(1);
    expect(renewed).to.include({ ip: addressOf(8), dns: '10.76.0.54' } satisfies Lease);
    table.send({ put: [{ ...entryOf(8, 'green'), ipv4: ipv4Of(9) }] });
    await client.command.signal('SIGUSR1');
    await untilValue(
      'the other address',
      () => client.leases(),
      (leases) => leases.at(-1)?.ip === addressOf(9),
    );
    expect(client.command.output.stdout).to.include('nak');
    await client.command.stop();
  });

  it('get no answer if the table does not have their MAC address', async () => {
    table.send({ put: [entryOf(7, 'blue')] });
    const known = await clients.start(wire, await addGuest('known', 7), 'udhcpc');
    const unknown = await clients.start(wire, await addGuest('unknown', 20), 'udhcpc');
    await untilValue(
      'three discovers without an answer',
      () => unknown.command.output.stderr,
      (log) => log.split('broadcasting discover').length > 3,
    );
    expect(unknown.leases()).to.deep.equal([]);
    await known.waitForLease();
    await Promise.all([known.command.stop(), unknown.command.stop()]);
  });

  async function addHost(name: string, mac?: string): Promise<WireLocation> {
    const host = `dhcp-${name}`;
    await wire.addHost(host, SEGMENT, []);
    hosts.push(host);
    if (mac !== undefined) await wire.setMac(`host/${host}`, 'eth0', mac);
    return `host/${host}`;
  }

  function addGuest(name: string, index: number): Promise<WireLocation> {
    return addHost(name, macOf(index));
  }

  async function routesOf(guest: WireLocation): Promise<string> {
    return (await wire.run(guest, { command: '/sbin/ip', args: ['route'] })).stdout;
  }
});

function macOf(index: number): string {
  return `02:00:00:00:76:${String(10 + index)}`;
}

function addressOf(index: number): string {
  return `10.76.0.${String(10 + index)}`;
}

function ipv4Of(index: number): object {
  return { address: addressOf(index), prefix: 24, router: '10.76.0.1' };
}

function entryOf(index: number, options: string): object {
  return { mac: macOf(index), ipv4: ipv4Of(index), options };
}
