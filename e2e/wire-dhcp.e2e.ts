import { expect } from 'chai';
import { RESPONDERS_NAMESPACE } from '../api/names.js';
import { ADDRESS_POOLS, NETWORK_ATTACHMENT_DEFINITIONS } from '../kube/resources.js';
import { DhcpClients } from './bed/network/dhcp-clients.js';
import type { RunningCommand, Wire, WireLocation } from './bed/network/wire.js';
import { guestLocation } from './bed/node/wired-guests.js';
import { until, untilValue } from './bed/wait.js';
import { HoldfastProcess } from './holdfast/process.js';
import { Responders } from './holdfast/responders.js';
import { describeStory, requireWire } from './story/describe.js';
import { bridgeOf } from './story/networks.js';
import { WireStory } from './story/wire-story.js';

const MAC = '02:00:00:00:77:07';

/** The whole way of an address: claim, responders in their pods, and real clients in guests. */
describeStory('A guest that asks by DHCP on a layer-2 network', (story) => {
  let guestProcess: HoldfastProcess | undefined;
  let responders: Responders | undefined;
  let clients: DhcpClients;
  let wired: WireStory;
  let wire: Wire;

  before('start guest and responders', async function () {
    this.timeout(60_000);
    const { bed, wire: bedWire } = requireWire(this);
    const found = await DhcpClients.find();
    if (typeof found === 'string') {
      console.log(`    ${found}`);
      this.skip();
    }
    clients = found;
    responders = new Responders({ ...bed, wire: bedWire });
    guestProcess = new HoldfastProcess(bed, 'guest', bed.controller.ports);
    await Promise.all([responders.start(), guestProcess.start({ args: ['--responder-image=registry.test/holdfast'] })]);
  });

  after('stop guest and responders', async () => {
    await guestProcess?.stop();
    await responders?.stop();
  });

  it('gets the addresses of its claim, and keeps them and its connections in a migration', async function () {
    this.timeout(120_000);
    wired = new WireStory(story(), requireWire(this));
    ({ wire } = wired.context.wire);
    const network = `${story().namespace}-flat`;
    try {
      await createNetwork(network);
      await expectAddresses(network);
    } finally {
      await removeResponders(network);
    }
  });

  async function expectAddresses(network: string): Promise<void> {
    await story().createVm('vm1', { data: 'flat' }, { macs: { data: MAC } });
    const vmi = await story().waitRunning('vm1');
    const addresses = await story().addresses.waitForIPs('vm1.data');
    await untilServed();
    const guest = guestLocation(vmi);
    const ipv4 = await clients.start(wire, guest, 'udhcpc', 'eth1');
    const lease = await ipv4.waitForLease();
    expect(lease).to.include({ dns: '10.77.0.53', search: 'blue.test', mtu: '1400' });
    const ipv6 = await clients.start(wire, guest, 'dhclient -6', 'eth1');
    expect((await ipv6.waitForLease()).dns).to.equal('fd00:77::53');
    const bare = addresses.map((address) => address.replace(/\/.*/, ''));
    expect([lease.ip, ipv6.leases().at(-1)?.ip].sort()).to.deep.equal([...bare].sort());

    const neighbour = `${story().namespace}-neighbour`;
    await wire.addHost(neighbour, bridgeOf(network), ['10.77.0.200/24', 'fd00:77::200/64']);
    const { server, client } = await converse(guest, `host/${neighbour}`, lease.ip ?? '');
    await story().migrate('vm1', 'Succeeded');
    await untilAnswers(client);
    expect(client.output.stderr).to.equal('');
    await ipv4.command.signal('SIGUSR1');
    expect((await ipv4.waitForLease(1)).ip).to.equal(lease.ip);

    await story().client.patch(
      ADDRESS_POOLS,
      { name: network },
      { type: 'merge', body: { spec: { guest: { dns: { nameservers: ['10.77.0.54'] } } } } },
    );
    await until('the changed name server to arrive', async () => {
      const known = ipv4.leases().length;
      await ipv4.command.signal('SIGUSR1');
      return (await ipv4.waitForLease(known)).dns === '10.77.0.54';
    });

    const [one] = responders!.pods();
    const { packets, table } = await responders!.of(one!);
    await Promise.all([packets.stop(), table.kill()]);
    const again = await clients.start(wire, guest, 'dhclient', 'eth1');
    expect((await again.waitForLease()).ip).to.equal(lease.ip);
    await Promise.all([ipv4, ipv6, again].map(({ command }) => command.stop()));
    await Promise.all([client.stop(), server.stop()]);
    await wire.removeHost(neighbour);
  }

  async function createNetwork(network: string): Promise<void> {
    await story().addresses.createPool(network, {
      network,
      subnets: [{ cidr: '10.77.0.0/24', gateway: '10.77.0.1' }, { cidr: 'fd00:77::/64' }],
      namespaces: [story().namespace],
      cooldownSeconds: 0,
      guest: {
        attachment: network,
        dhcp: {},
        dns: { nameservers: ['10.77.0.53', 'fd00:77::53'], search: ['blue.test'] },
        mtu: 1400,
      },
    });
    const bridge = bridgeOf(network);
    const silent = { type: 'tuning', sysctl: { 'net.ipv6.conf.IFNAME.disable_ipv6': '1' } };
    await story().client.create(NETWORK_ATTACHMENT_DEFINITIONS, {
      metadata: { namespace: RESPONDERS_NAMESPACE, name: network },
      spec: {
        config: JSON.stringify({ cniVersion: '1.0.0', name: network, plugins: [{ type: 'bridge', bridge }, silent] }),
      },
    });
    await story().network('flat', {
      config: {
        cniVersion: '1.0.0',
        name: network,
        type: 'bridge',
        bridge,
        disableContainerInterface: true,
        allowPersistentIPs: true,
      },
    });
  }

  async function untilServed(): Promise<void> {
    await untilValue(
      'two responders',
      () => responders!.pods(),
      (pods) => pods.length === 2,
    );
    for (const pod of responders!.pods()) await responders!.of(pod);
  }

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

  async function removeResponders(network: string): Promise<void> {
    const guest = { dhcp: null, attachment: null };
    await story().client.patch(ADDRESS_POOLS, { name: network }, { type: 'merge', body: { spec: { guest } } });
    await until('the responders to be gone', () => responders?.pods().length === 0);
    await story().client.delete(NETWORK_ATTACHMENT_DEFINITIONS, { namespace: RESPONDERS_NAMESPACE, name: network });
  }
});

const ECHO = `require('net').createServer((socket) => socket.pipe(socket)).listen(7007, () => console.log('listens'))`;

const TALK = `
  const socket = require('net').connect(7007, 'ADDRESS').setNoDelay();
  socket.on('data', () => console.log('x')).on('error', (error) => console.error(String(error)));
  setInterval(() => socket.write('x'), 20);
`;
