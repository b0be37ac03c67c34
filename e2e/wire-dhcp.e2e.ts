import { expect } from 'chai';
import { DEFAULT_ROUTE_ANNOTATION, GUEST_CONFIGURED } from '../api/names.js';
import { bareAddress } from '../test/bare-address.js';
import type { RunningCommand, Wire, WireLocation } from './bed/network/wire.js';
import { guestLocation } from './bed/node/wired-guests.js';
import { until } from './bed/wait.js';
import { describeStory } from './story/describe.js';
import { useServedNetwork } from './story/served-network.js';

const MAC = '02:00:00:00:77:07';

/** The whole way of an address: claim, responders in their pods, and real clients in guests. */
describeStory('A guest that asks by DHCP on a layer-2 network', (story) => {
  const network = useServedNetwork({
    subnets: [{ cidr: '10.77.0.0/24', gateway: '10.77.0.1' }, { cidr: 'fd00:77::/64' }],
    guest: { dns: { nameservers: ['10.77.0.53', 'fd00:77::53'], search: ['blue.test'] }, mtu: 1400 },
  });
  let wire: Wire;

  it('gets the addresses of its claim, and keeps them and its connections in a migration', async function () {
    this.timeout(120_000);
    const { clients, responders, wire: bedWire } = network().services;
    ({ wire } = bedWire);
    expect(new Set(responders.pods(network().name).map(({ spec }) => spec?.nodeName)).size, 'nodes').to.equal(2);
    await network().attach(story(), 'flat');
    const annotations = { [DEFAULT_ROUTE_ANNOTATION]: 'data' };
    await story().createVm('vm1', { data: 'flat' }, { macs: { data: MAC }, annotations });
    const vmi = await story().waitRunning('vm1');
    const addresses = await story().addresses.waitForIPs('vm1.data');
    const guest = guestLocation(vmi);
    const ipv4 = await clients.start(wire, guest, 'udhcpc', 'eth1');
    const lease = await ipv4.waitForLease();
    expect(lease).to.include({ dns: '10.77.0.53', search: 'blue.test', mtu: '1400' });
    const ipv6 = await clients.start(wire, guest, 'dhclient -6', 'eth1');
    expect((await ipv6.waitForLease()).dns).to.equal('fd00:77::53');
    const got = [lease.ip, ipv6.leases().at(-1)?.ip].sort();
    expect(got).to.deep.equal(addresses.map(bareAddress).sort());
    await story().addresses.waitForCondition('vm1.data', GUEST_CONFIGURED, 'True');

    const neighbour = `${story().namespace}-neighbour`;
    await wire.addHost(neighbour, network().bridge, ['10.77.0.200/24', 'fd00:77::200/64']);
    const { server, client } = await converse(guest, `host/${neighbour}`, lease.ip ?? '');
    await story().migrate('vm1', 'Succeeded');
    await untilAnswers(client);
    expect(client.output.stderr).to.equal('');
    await ipv4.command.signal('SIGUSR1');
    expect((await ipv4.waitForLease(1)).ip).to.equal(lease.ip);

    await network().edit({
      subnets: [{ cidr: '10.77.0.0/24', gateway: '10.77.0.254' }, { cidr: 'fd00:77::/64' }],
      guest: { dns: { nameservers: ['10.77.0.54'] } },
    });
    await until('the changed name server and gateway to arrive', async () => {
      const known = ipv4.leases().length;
      await ipv4.command.signal('SIGUSR1');
      const { dns } = await ipv4.waitForLease(known);
      const { stdout } = await wire.run(guest, { command: '/sbin/ip', args: ['route'] });
      return dns === '10.77.0.54' && stdout.startsWith('default via 10.77.0.254 ');
    });

    const [one] = await network().untilServed();
    await one?.kill();
    const again = await clients.start(wire, guest, 'dhclient', 'eth1');
    expect((await again.waitForLease()).ip).to.equal(lease.ip);
    await Promise.all([ipv4, ipv6, again].map(({ command }) => command.stop()));
    await Promise.all([client.stop(), server.stop()]);
    await wire.removeHost(neighbour);
  });

  /** Starts a server in the guest, and a client that talks to it all the time. */
  async function converse(
    guest: WireLocation,
    from: WireLocation,
    address: string,
  ): Promise<{ server: RunningCommand; client: RunningCommand }> {
    const node = (script: string) => ({ command: process.execPath, args: ['-e', script] });
    const server = await wire.start(guest, node(ECHO));
    await until('the server to listen', () => server.output.stdout.includes('listens'));
    const client = await wire.start(from, node(TALK.replace('ADDRESS', address)));
    await untilAnswers(client);
    return { server, client };
  }

  async function untilAnswers({ output }: RunningCommand): Promise<void> {
    const { length } = output.stdout;
    await until('more answers', () => output.stdout.length > length + 5);
  }
});

const ECHO = `require('net').createServer((socket) => socket.pipe(socket)).listen(7007, () => console.log('listens'))`;

const TALK = `
  const socket = require('net').connect(7007, 'ADDRESS').setNoDelay();
  socket.on('data', () => console.log('x')).on('error', (error) => console.error(String(error)));
  setInterval(() => socket.write('x'), 20);
`;
