import { isIPv4 } from 'node:net';
import { expect } from 'chai';
import { DEFAULT_ROUTE_ANNOTATION, GUEST_CONFIGURED, RESPONDERS_NAMESPACE } from '../../api/names.js';
import { podInterfaceName } from '../../api/pod.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import type { LastingCommand, RunningCommand, Wire, WireLocation } from '../../bed/network/wire.js';
import { guestLocation } from '../../bed/node/wired-guests.js';
import { until } from '../../bed/processes/wait.js';
import { describeStory } from '../../bed/story/describe.js';
import { waitForEvent } from '../../bed/story/events.js';
import { ServedNetwork, useServedNetwork } from '../../bed/story/wire/served-network.js';
import { WireStory } from '../../bed/story/wire/wire-story.js';

const MAC = '02:00:00:00:77:07';
const SPEC = {
  subnets: [{ cidr: '10.77.0.0/22', gateway: '10.77.0.1' }, { cidr: 'fd00:77::/64' }],
  guest: { dns: { nameservers: ['10.77.0.53', 'fd00:77::53'], search: ['blue.test'] }, mtu: 1400 },
};

/** The whole way of an address: claim, responders in their pods, and real clients in guests. */
describeStory('A guest that asks by DHCP on a layer-2 network', (story) => {
  const network = useServedNetwork(SPEC);
  const hosts: string[] = [];
  const others: ServedNetwork[] = [];
  let wire: Wire;

  beforeEach('create a NAD', async () => {
    ({ wire } = network().services.wire);
    await network().edit(SPEC);
    await network().attach(story(), 'flat');
  });
  afterEach('remove hosts and other networks', async () => {
    for (const name of hosts.splice(0)) await wire.removeHost(name);
    for (const each of others.splice(0)) await each.remove();
  });

  it('gets the addresses of its claim, and keeps them and its connections in a migration', async () => {
    const { clients, responders } = network().services;
    expect(new Set(responders.pods(network().name).map(({ spec }) => spec?.nodeName)).size, 'nodes').to.equal(2);
    const annotations = { [DEFAULT_ROUTE_ANNOTATION]: 'data' };
    const vmi = await story().runVm('vm1', { data: 'flat' }, { macs: { data: MAC }, annotations });
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

    const { server, client } = await converse(guest, await addHost('10.77.3.200/22'), lease.ip ?? '');
    await story().migrate('vm1', 'Succeeded');
    await untilAnswers(client);
    expect(client.output.stderr).to.equal('');
    await ipv4.command.signal('SIGUSR1');
    expect((await ipv4.waitForLease(1)).ip).to.equal(lease.ip);

    await network().edit({
      subnets: [{ ...SPEC.subnets[0], gateway: '10.77.0.254' }, SPEC.subnets[1]],
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
    await one?.start();
  });

  it('gets the last free address but one, and no answer while it is on a NAD with IPAM', async () => {
    const { bed, clients, wire: nodes } = network().services;
    const wired = new WireStory(story(), network().services);
    await story().network('pods', { network: network().name, subnets: [] });
    const { items } = await bed.client.list(IPAM_CLAIMS, { namespace: RESPONDERS_NAMESPACE });
    const servers = items.flatMap(({ status }) => (status?.ips ?? []).map(bareAddress)).filter(isIPv4);
    const ranges = [...servers, '10.77.1.10', '10.77.1.11'].map((address) => `${address}-${address}`);
    // addresses of former guests are leased for a while
    await until('the pool to be full', async () => {
      await network().edit({ subnets: [{ ...SPEC.subnets[0], ranges }, SPEC.subnets[1]] });
      return true;
    });
    const { guest, ips } = await network().startGuest(story(), 'vm1', 'flat', MAC);
    const [ip] = ips.map(bareAddress);
    const client = await clients.start(wire, guest, 'udhcpc', 'eth1');
    expect((await client.waitForLease()).ip).to.equal(ip);
    const pod = await wired.createNeighbour('pods');
    const last = await nodes.addressesOf(pod, 'net1');
    expect([...ips, ...last].map(bareAddress).filter(isIPv4).sort()).to.deep.equal(['10.77.1.10', '10.77.1.11']);
    const inPod = await clients.start(wire, nodes.locationOf(pod), 'udhcpc', 'net1');
    await moveTo('pods');
    await wired.waitForAddresses(await wired.launcher('vm1'), podInterfaceName('data'), ips);
    await network().untilGuests(0);
    const twin = await addHost();
    await wire.setMac(twin, 'eth0', MAC);
    const inTwin = await clients.start(wire, twin, 'udhcpc');
    expect([await inPod.isIgnored(), await inTwin.isIgnored()]).to.deep.equal([true, true]);
    await wired.deletePod(pod.metadata.name);
    await inTwin.command.stop();

    const back = await clients.start(wire, await moveTo('flat'), 'udhcpc', 'eth1');
    expect((await back.waitForLease()).ip).to.equal(ip);
    await back.command.stop();
  });

  it('is answered by one responder, and in IPv6 by the other one too, if the pool has no address for that', async () => {
    const { services } = network();
    const { bed, clients, responders } = services;
    const ranges = ['10.77.8.10-10.77.8.11'];
    const full = await ServedNetwork.createWithoutResponders(services, {
      subnets: [{ cidr: '10.77.8.0/24', ranges }, { cidr: 'fd00:77:8::/64' }],
    });
    others.push(full);
    await full.attach(story(), 'full');
    const { guest, ips } = await full.startGuest(story(), 'vm1', 'full', MAC);
    await full.serve();
    await full.untilServed();
    const pool = { namespace: 'default', name: full.name };
    const { message = '' } = await waitForEvent(bed.client, pool, 'ResponderWithoutAddress', /answers no DHCPv4/);
    const ipv4 = await clients.start(wire, guest, 'udhcpc', 'eth1');
    expect((await ipv4.waitForLease()).ip).to.equal(bareAddress(ips[0] ?? ''));
    const [other] = responders.pods(full.name).filter(({ metadata }) => !message.includes(metadata.name));
    await (await responders.of(other!)).kill();
    const ipv6 = await clients.start(wire, guest, 'dhclient -6', 'eth1');
    expect((await ipv6.waitForLease()).ip).to.equal(bareAddress(ips[1] ?? ''));
    expect(await clients.solicitRouter(wire, guest, 'eth1')).to.match(/Stateful address conf\.\s*: +Yes/);
    await Promise.all([ipv4.command.stop(), ipv6.command.stop()]);
  });

  it('is in danger if another DHCP server answers, which an event on the pool says', async () => {
    const { bed, clients } = network().services;
    const host = await addHost('10.77.3.202/22');
    const server = await clients.startServer(wire, host, { address: '10.77.3.202', lease: '10.77.3.203' });
    const [responder] = await network().untilServed();
    await responder?.kill();
    await responder?.start();
    const pool = { namespace: 'default', name: network().name };
    const { message } = await waitForEvent(bed.client, pool, 'ForeignDHCPServer');
    const [eth0] = await wire.interfaces(host);
    expect(message).to.include('10.77.3.202').and.to.include(eth0?.mac);
    expect(await responder?.table.metrics()).to.match(
      /^holdfast_responder_observations_total\{.*kind="server".*\} 1$/m,
    );
    await server.stop();
  });

  async function addHost(...addresses: string[]): Promise<WireLocation> {
    const name = `${story().namespace}-${hosts.length}`;
    await wire.addHost(name, network().bridge, addresses);
    hosts.push(name);
    return `host/${name}`;
  }

  /** Starts the VM again on another NAD. @returns the new guest */
  async function moveTo(nad: string): Promise<WireLocation> {
    await story().stop('vm1');
    await story().swapNetwork('vm1', 'data', nad);
    return guestLocation(await story().start('vm1'));
  }

  /** Starts a server in the guest, and a client that talks to it all the time. */
  async function converse(
    guest: WireLocation,
    from: WireLocation,
    address: string,
  ): Promise<{ server: RunningCommand; client: RunningCommand }> {
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

function node(script: string): LastingCommand {
  return { command: process.execPath, args: ['-e', script] };
}

const ECHO = `require('net').createServer((socket) => socket.pipe(socket)).listen(7007, () => console.log('listens'))`;

const TALK = `
  const socket = require('net').connect(7007, 'ADDRESS').setNoDelay();
  socket.on('data', () => console.log('x')).on('error', (error) => console.error(String(error)));
  setInterval(() => socket.write('x'), 20);
`;
