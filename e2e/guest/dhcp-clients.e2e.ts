import { join } from 'node:path';
import { expect } from 'chai';
import { DhcpClients, type DhcpClientName, type Dhcpv6ClientName, type Lease } from '../../bed/network/dhcp-clients.js';
import type { Wire, WireLocation } from '../../bed/network/wire.js';
import { PacketTable, startPackets } from '../../bed/holdfast/packets.js';
import { requireWire } from '../../bed/story/describe.js';
import { untilValue } from '../../bed/processes/wait.js';

const SEGMENT = 'br-clients';
const CLIENTS: readonly DhcpClientName[] = ['udhcpc', 'dhclient', 'dhcpcd', 'systemd-networkd'];
const CLIENTS6: readonly (DhcpClientName | Dhcpv6ClientName)[] = [
  'dhclient -6',
  'dhcpcd -6',
  'dhcp6c',
  'systemd-networkd',
];
const CONFIG = {
  v: 2,
  interface: 'eth0',
  server: { ipv4: '10.76.0.2', duid: '0004000102030405060708090a0b0c0d0e0f' },
  subnets: [{ cidr: '10.76.0.0/24' }, { cidr: 'fd00:76::/64' }],
  peers: [],
  times: { renew: 300, rebind: 600, lease: 86_400, advertise: 300 },
};
const OPTIONS = {
  id: 'blue',
  mtu: 1400,
  dns: ['10.76.0.53', 'fd00:76::53'],
  search: ['blue.test', 'green.test'],
  ntp: ['10.76.0.123'],
  routes: [{ destination: '172.31.0.0/16', gateway: '10.76.0.9' }],
};
const EXPECTED = { dns: '10.76.0.53', mtu: '1400', ntp: '10.76.0.123', seconds: '86400' };

/** Real clients and holdfast-packets on a real segment, with a table of the test. */
describe('DHCP clients of a segment', () => {
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
    await table.apply({ fresh: { forMs: 600_000 } });
  });

  after('remove the hosts', async () => {
    for (const name of hosts) await wire.removeHost(name);
  });

  it('get address, routes, name servers, search domains, NTP servers and MTU', async () => {
    const present = [...CLIENTS.entries()].filter(([, name]) => clients.has(name));
    await Promise.all(present.map(([index, name]) => expectLease(index, name)));
  });

  async function expectLease(index: number, name: DhcpClientName): Promise<void> {
    const guest = await addGuest(name, index);
    const client = await clients.start(wire, guest, name);
    const { search = '', ...lease } = await client.waitForLease();
    expect(lease, name).to.deep.equal({ ip: addressOf(index), ...EXPECTED });
    expect(search.replaceAll(/\.( |$)/g, '$1'), name).to.equal('blue.test green.test');
    const routes = await routesOf(guest);
    expect(routes, name).to.match(/^default via 10\.76\.0\.1 dev eth0/m);
    expect(routes, name).to.match(/^172\.31\.0\.0\/16 via 10\.76\.0\.9 dev eth0/m);
    const [eth0] = await wire.interfaces(guest);
    expect(
      eth0?.addresses.map(({ address }) => address),
      name,
    ).to.include(`${addressOf(index)}/24`);
    await client.command.stop();
  }

  it('get their IPv6 address, without a default route', async () => {
    const present = [...CLIENTS6.entries()].filter(([, name]) => name !== 'systemd-networkd' || clients.has(name));
    await Promise.all(present.map(([index, name]) => expectLease6(30 + index, name)));
  });

  async function expectLease6(index: number, name: DhcpClientName | Dhcpv6ClientName): Promise<void> {
    const guest = await addGuest(`six-${index}`, index);
    await table.apply({ put: [entry6Of(index)] });
    const client = await clients.start(wire, guest, name);
    await untilAddress(guest, `fd00:76::${index}/128`);
    if (name.endsWith('-6')) {
      expect(await client.waitForLease(), name).to.include({ dns: 'fd00:76::53', seconds: '86400' });
    }
    const routes = await routesOf(guest, '-6');
    expect(routes, name).to.match(/^fd00:76::\/64 .*dev eth0/m);
    expect(routes, name).not.to.include('default');
    await client.command.stop();
  }

  it('hear from no router, and only those in the table hear anything', async () => {
    const known = await addGuest('asking', 40);
    const unknown = await addGuest('stranger', 41);
    await table.apply({ put: [entry6Of(40)] });
    const [answer, silence] = await Promise.all([
      clients.solicitRouter(wire, known),
      clients.solicitRouter(wire, unknown, 'eth0', 2),
    ]);
    expect(answer).to.match(/Router lifetime\s*: +0 /);
    expect(answer).to.match(/Stateful address conf\.\s*: +Yes/);
    expect(answer).to.match(/Autonomous address conf\.: +No/);
    expect(answer).to.match(/Recursive DNS server\s*: fd00:76::53/);
    expect(silence).to.include('No response');
    expect(await routesOf(unknown, '-6')).not.to.include('fd00:76::');
  });

  it('reach the servers across a bridge with MLD snooping and a querier', async () => {
    const bridge = async (...options: string[]) => {
      const args = ['link', 'set', 'dev', SEGMENT, 'type', 'bridge', ...options];
      expect(await wire.run('fabric', { command: '/sbin/ip', args })).to.include({ exitCode: 0 });
    };
    await bridge('mcast_snooping', '1', 'mcast_querier', '1', 'mcast_startup_query_interval', '50');
    const guest = await addGuest('snooped', 42);
    await table.apply({ put: [entry6Of(42)] });
    await untilValue(
      'the bridge to know the groups of the servers',
      async () => (await wire.run('fabric', { command: '/sbin/bridge', args: ['mdb', 'show', 'dev', SEGMENT] })).stdout,
      (groups) => ['ff02::1:2', 'ff02::2 '].every((group) => groups.includes(group)),
    );
    const client = await clients.start(wire, guest, 'dhclient -6');
    expect(await client.waitForLease()).to.include({ ip: 'fd00:76::42' });
    await client.command.stop();
    await bridge('mcast_querier', '0');
  });

  it('get changed options when they renew, and another address by starting again', async () => {
    const guest = await addGuest('renewing', 8);
    await table.apply({ put: [entryOf(8, 'blue')] });
    const client = await clients.start(wire, guest, 'udhcpc');
    expect((await client.waitForLease()).dns).to.equal('10.76.0.53');
    await table.apply({ options: { ...OPTIONS, id: 'green', dns: ['10.76.0.54'] } }, { put: [entryOf(8, 'green')] });
    await client.command.signal('SIGUSR1');
    const renewed = await client.waitForLease(1);
    expect(renewed).to.include({ ip: addressOf(8), dns: '10.76.0.54' } satisfies Lease);
    await table.apply({ put: [{ ...entryOf(8, 'green'), ipv4: ipv4Of(9) }] });
    await client.command.signal('SIGUSR1');
    await untilValue(
      'the other address',
      () => client.leases(),
      (leases) => leases.at(-1)?.ip === addressOf(9),
    );
    expect(client.command.output.stdout).to.include('nak');
    await client.command.stop();
  });

  it('renew through a router when their subnet is another one than that of the server', async () => {
    const router = await addHost('router');
    for (const address of ['10.76.0.1/24', '10.77.0.1/24']) await wire.addAddress(router, 'eth0', address, true);
    const forward =
      'cd /proc/sys/net/ipv4; echo 1 > ip_forward; echo 0 > conf/all/send_redirects; echo 0 > conf/eth0/send_redirects';
    await wire.run(router, { command: '/bin/sh', args: ['-c', forward] });
    table.send({ config: { ...CONFIG, times: { ...CONFIG.times, renew: 8 } } });
    const present = [...CLIENTS.entries()].filter(([, name]) => name !== 'dhclient' && clients.has(name));
    const ask = async ([index, name]: [number, DhcpClientName]) => {
      const guest = await addGuest(`routed-${index}`, 60 + index);
      await table.apply({ put: [routedEntryOf(60 + index, 'blue')] });
      const client = await clients.start(wire, guest, name);
      expect((await client.waitForLease()).dns, name).to.equal('10.76.0.53');
      await table.apply(
        { options: { ...OPTIONS, id: 'green', dns: ['10.76.0.54'] } },
        { put: [routedEntryOf(60 + index, 'green')] },
      );
      if (name === 'udhcpc') await client.command.signal('SIGUSR1'); // it does not read the renewal time
      const renewed = await untilValue(
        `${name} to renew with the changed name server`,
        () => client.leases().at(-1),
        (lease) => lease?.dns === '10.76.0.54',
      );
      expect(renewed, name).to.include({ ip: `10.77.0.${60 + index}` });
      const neighbours = await wire.run(guest, { command: '/sbin/ip', args: ['-4', 'neigh'] });
      expect(neighbours.stdout, name).to.include('10.77.0.1 ').and.not.to.include('10.76.0.2 ');
      await client.command.stop();
    };
    await Promise.all(present.map(ask));
    table.send({ config: CONFIG });
  });

  it('get no answer if the table does not have their MAC address', async () => {
    await table.apply({ put: [entryOf(7, 'blue')] });
    const known = await clients.start(wire, await addGuest('known', 7), 'udhcpc');
    const unknown = await clients.start(wire, await addGuest('unknown', 20), 'udhcpc');
    expect(await unknown.isIgnored()).to.equal(true);
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

  async function routesOf(guest: WireLocation, family: '-4' | '-6' = '-4'): Promise<string> {
    return (await wire.run(guest, { command: '/sbin/ip', args: [family, 'route'] })).stdout;
  }

  async function untilAddress(guest: WireLocation, address: string): Promise<void> {
    await untilValue(
      `${guest} to have ${address}`,
      async () => (await wire.interfaces(guest)).flatMap(({ addresses }) => addresses.map((each) => each.address)),
      (addresses) => addresses.includes(address),
    );
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

/** A guest in the second subnet of the segment. */
function routedEntryOf(index: number, options: string): object {
  return { mac: macOf(index), ipv4: { address: `10.77.0.${index}`, prefix: 24, router: '10.77.0.1' }, options };
}

function entry6Of(index: number): object {
  return { mac: macOf(index), ipv6: { address: `fd00:76::${index}` }, options: 'blue' };
}

function entryOf(index: number, options: string): object {
  return { mac: macOf(index), ipv4: ipv4Of(index), options };
}
