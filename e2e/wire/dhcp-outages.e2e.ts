import { expect } from 'chai';
import { GUEST_SERVED, RESPONDERS_NAMESPACE } from '../../api/names.js';
import { responderSetName } from '../../api/responders.js';
import { ADDRESS_POOLS, STATEFUL_SETS, VIRTUAL_MACHINES } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import type { RunningClient } from '../../bed/network/dhcp-clients.js';
import type { Watch, Wire, WireLocation } from '../../bed/network/wire.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { ApiProxy } from '../../bed/faults/api-proxy.js';
import { describeStory } from '../../bed/story/describe.js';
import { createGeneratedGuests, resultsOf, startGeneratedGuests } from '../../bed/story/wire/generated-guests.js';
import { RESPONDER_IMAGE, useServedNetwork } from '../../bed/story/wire/served-network.js';

const MAC = '02:00:00:00:78:07';
const RENEWING = 20;
const BOOTING = 500;
const STALENESS = '--max-staleness=10s';

describeStory('Guests of a layer-2 network', (story) => {
  const network = useServedNetwork({ subnets: [{ cidr: '10.78.0.0/22' }] });
  const hosts: string[] = [];
  const wire = (): Wire => network().services.wire.wire;

  beforeEach('create a NAD', () => network().attach(story(), 'flat'));
  afterEach('remove the hosts', async () => {
    for (const name of hosts.splice(0)) await wire().removeHost(name);
  });

  it('keep their addresses while the API server is away, and get them again if no other host has them', async () => {
    const { clients } = network().services;
    const { guest, ips } = await network().startGuest(story(), 'vm1', 'flat', MAC);
    const [ip = ''] = ips.map(bareAddress);
    const renewing = await clients.start(wire(), guest, 'udhcpc', 'eth1');
    expect((await renewing.waitForLease()).ip).to.equal(ip);
    const host = await addHost();
    await withoutApiServer(async () => {
      // not before, because the slower responder may still ask for the first lease
      const watch = await wire().watch(host, 'eth0');
      await renewing.command.signal('SIGUSR1');
      expect((await renewing.waitForLease(1)).ip).to.equal(ip);
      expect(await probesOf(watch, ip)).to.deep.equal([0, 0]);
      await forget(renewing, guest);

      const rebooted = await clients.startWithLease(wire(), guest, '10.78.0.99', 'eth1');
      expect((await rebooted.waitForLease()).ip).to.equal(ip);
      expect(rebooted.command.output.stderr).to.include('DHCPREQUEST for 10.78.0.99').and.not.to.include('DHCPNAK');
      // the guest has its answer from the faster one
      await until('both responders to have asked twice', async () =>
        (await probesOf(watch, ip)).every((probes) => probes >= 2),
      );
      await forget(rebooted, guest);

      await wire().addAddress(host, 'eth0', `${ip}/24`);
      const asking = await clients.start(wire(), guest, 'udhcpc', 'eth1');
      expect(await asking.isIgnored()).to.equal(true);
      await wire().flushAddresses(host, 'eth0');
      expect((await asking.waitForLease()).ip).to.equal(ip);
      await asking.command.stop();
      await watch.stop();
    });
  });

  it('are answered while both responders are upgraded', async () => {
    await createGeneratedGuests(story(), network(), { count: RENEWING, nad: 'flat' });
    const flags = [`-count=${RENEWING}`, `-renewing=${RENEWING}`, '-renew=2m'];
    const program = await startGeneratedGuests(network(), await addHost(), flags);
    await untilValue(
      'all guests to have an address',
      () => program.output.stderr,
      (log) => log.includes(`${RENEWING} guests have an address`),
    );
    const { bed, guest, responders } = network().services;
    const before = responders.pods(network().name).map(({ metadata }) => metadata.uid);
    // the simulated kubelet does not read readiness probes, so the test says when the next pod may be replaced
    const replace = async (partition: number) => {
      const set = { namespace: RESPONDERS_NAMESPACE, name: responderSetName(await poolOf(network().name)) };
      const body = { spec: { updateStrategy: { rollingUpdate: { partition } } } };
      await bed.client.patch(STATEFUL_SETS, set, { type: 'merge', body });
      await untilReplaced(2 - partition);
    };
    const untilReplaced = async (count: number) => {
      await untilValue(
        `${count} other responders`,
        () => responders.pods(network().name).map(({ metadata }) => metadata.uid),
        (uids) => uids.length === 2 && uids.filter((uid) => !before.includes(uid)).length === count,
      );
      await network().untilServed();
    };
    await replace(2);
    await guest.stop();
    await guest.start({ args: [`${RESPONDER_IMAGE}:2`] });
    await replace(1);
    await replace(0);
    await program.signal('SIGTERM');
    const { booted, renewals, answered } = await resultsOf(program);
    // a slow machine renews less often
    expect(renewals).to.be.at.least(RENEWING);
    expect({ booted, answered }).to.deep.equal({ booted: RENEWING, answered: renewals });
  });

  it('are answered under their own MAC address only, also if the VM of an older claim copies that of another VM', async () => {
    const other = '02:00:00:00:78:08';
    await network().startGuest(story(), 'copy', 'flat', other);
    const { guest, ips } = await network().startGuest(story(), 'vm1', 'flat', MAC);
    await network().untilGuests(2);
    const host = await addHost('10.78.3.201/22');
    await wire().setMac(host, 'eth0', other);
    await wire().run(host, { command: '/sbin/ip', args: ['route', 'add', '255.255.255.255', 'dev', 'eth0'] });
    const script = SPOOF.replace('MACS', JSON.stringify([MAC, other]));
    const asking = await wire().start(host, { command: process.execPath, args: ['-e', script] });
    await until('two answers', () => asking.output.stdout.split(other).length > 2);
    expect(asking.output.stdout).not.to.include(MAC);
    await asking.stop();

    const client = await network().services.clients.start(wire(), guest, 'udhcpc', 'eth1');
    await client.waitForLease();
    await story().stop('copy');
    const path = '/spec/template/spec/domain/devices/interfaces/1/macAddress';
    const operations = [{ op: 'replace', path, value: MAC } as const];
    await story().client.patch(VIRTUAL_MACHINES, story().ref('copy'), { type: 'json', operations });
    await story().requestStart('copy');
    const { reason, message } = await story().addresses.waitForCondition('copy.data', GUEST_SERVED, 'False');
    expect(reason).to.equal('MACAddressConflict');
    expect(message).to.include(MAC).and.to.include('vm1.data');
    await network().untilGuests(1);
    await client.command.signal('SIGUSR1');
    expect((await client.waitForLease(1)).ip).to.equal(bareAddress(ips[0] ?? ''));
    await client.command.stop();
  });

  it('get their addresses within 3 s if 500 of them boot at once', async () => {
    await createGeneratedGuests(story(), network(), { count: BOOTING, nad: 'flat' });
    const host = await addHost();
    // a core that stalls delays one boot, responders that are too slow delay each
    await untilValue(
      `${BOOTING} guests to boot within 3 s, again and again for a minute`,
      async () => resultsOf(await startGeneratedGuests(network(), host, [`-count=${BOOTING}`])),
      ({ booted, bootMs }) => booted === BOOTING && bootMs <= 3_000,
    );
  });

  async function addHost(...addresses: string[]): Promise<WireLocation> {
    const name = `${story().namespace}-${hosts.length}`;
    await wire().addHost(name, network().bridge, addresses);
    hosts.push(name);
    return `host/${name}`;
  }

  /** How many ARP probes for an address each responder has sent. */
  async function probesOf({ events }: Watch, address: string): Promise<number[]> {
    const responders = await network().untilServed();
    return Promise.all(
      responders.map(async ({ location }) => {
        const guest0 = (await wire().interfaces(location)).find(({ name }) => name === 'guest0');
        const asked = events.flatMap(({ frame }) => (frame?.probe === true && frame.asks === address ? [frame] : []));
        return asked.filter(({ mac }) => mac === guest0?.mac).length;
      }),
    );
  }

  /** Stops a client, and removes what it had from the guest. */
  async function forget({ command }: RunningClient, guest: WireLocation): Promise<void> {
    await command.stop();
    await wire().flushAddresses(guest, 'eth1');
  }

  /** Runs `act` while no responder reaches the API server, and their tables are stale. */
  async function withoutApiServer(act: () => Promise<void>): Promise<void> {
    const { bed, responders } = network().services;
    const both = await network().untilServed();
    const proxy = await ApiProxy.open(bed);
    try {
      const kubeconfig = await proxy.kubeconfig(await responders.kubeconfig());
      await Promise.all(both.map((each) => each.restartTable({ kubeconfig, args: [STALENESS] })));
      const untilStale = (isStale: 0 | 1) =>
        untilValue(
          `the tables to be ${isStale ? 'stale' : 'fresh'}`,
          () => Promise.all(both.map(({ table }) => table.metrics())),
          (metrics) =>
            metrics.every((text) => text.includes(`table_stale_status{pool="${network().name}"} ${isStale}`)),
        );
      await untilStale(0);
      proxy.disconnect();
      await untilStale(1);
      await act();
    } finally {
      await Promise.all(both.map((each) => each.restartTable()));
      await proxy.close();
    }
  }

  async function poolOf(name: string): Promise<{ uid: string }> {
    const { metadata } = await network().services.bed.client.get(ADDRESS_POOLS, { name });
    return { uid: metadata.uid ?? '' };
  }
});

/** Sends DISCOVERs with these MAC addresses in turn, and prints those in the answers. */
const SPOOF = `
  const socket = require('dgram').createSocket('udp4');
  const bytes = (mac) => Buffer.from(mac.replaceAll(':', ''), 'hex');
  const discover = (mac) => {
    const packet = Buffer.alloc(244);
    packet.set([1, 1, 6, 0, 1, 2, 3, 4, 0, 0, 0x80]); // the answer is to be broadcast
    packet.set(bytes(mac), 28);
    packet.set([0x63, 0x82, 0x53, 0x63, 53, 1, 1, 255], 236);
    return packet;
  };
  socket.on('message', (answer) => console.log(answer.subarray(28, 34).toString('hex').match(/../g).join(':')));
  socket.bind(68, () => {
    socket.setBroadcast(true);
    setInterval(() => MACS.forEach((mac) => socket.send(discover(mac), 67, '255.255.255.255')), 200);
  });
`;
