import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { kubeVirtVersion } from '../../bed/build/versions.js';
import { CASES, QUIET_SYSCTLS } from '../../bed/network/migration/cases.js';
import { INTERFACE } from '../../bed/network/migration/launcher-namespace.js';
import { type MigrationOutcome, observeMigrations } from '../../bed/network/migration/wire-migration.js';
import { useWireFixture } from '../../bed/network/fixture/use-wire-fixture.js';
import type { AddressState } from '../../bed/network/wire-events.js';
import { bridgeNetwork, type WireFixture } from '../../bed/network/fixture/wire-fixture.js';
import type { WireLocation } from '../../bed/network/wire.js';
import { describeStory, itOnBed, itOnWire } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { untilValue } from '../../bed/processes/wait.js';
import { waitForWireAddresses } from '../../bed/story/wire/wire-addresses.js';

/** Cases whose port is held. */
const HELD = [
  'bridge, MAC in the spec, a stranger asks',
  'bridge, MAC in the spec, enabledad',
  'bridge, own MACs, a stranger asks',
  'macvlan, MAC in the spec',
  'macvlan, own MACs',
];
const MOVES = [
  'bridge, MAC in the spec',
  'bridge, own MACs',
  'bridge, own MACs, a stranger asks',
  'bridge, own MACs, quiet, a stranger asks',
  'layer 2, MAC in the spec',
  'layer 2, MAC in the spec, disableContainerInterface',
  ...HELD.map((name) => `held: ${name}`),
];
/** Each needs some packets a second, and namespaces of its own. */
const AT_ONCE = 6;

/** Tests the statements of docs/concepts/live-migration.md with real plugins and this kernel. bench/migration.ts has all figures. */
describe('The target of a live migration, set up while the guest runs on the source', () => {
  let stage: WireFixture;
  /** By name of the case. */
  let moves: ReadonlyMap<string, PromiseSettledResult<MigrationOutcome>>;

  useWireFixture((opened) => {
    stage = opened;
  });

  before('observe all moves, which mostly wait', async () => {
    const cases = MOVES.map((name, index) => ({ segment: `mv${index}`, ...CASES[name]!(`mv${index}`) }));
    const outcomes = await observeMigrations(stage, cases, AT_ONCE);
    moves = new Map(MOVES.map((name, index) => [name, outcomes[index]!]));
  });

  it('takes packets and breaks connections if it has the MAC address of the guest', () => {
    const { ipv4, ipv6, connection, switchMoves, targetMessages } = moved('bridge, MAC in the spec');
    expect(ipv4.misdirected).to.be.greaterThan(0);
    expect(ipv6.misdirected).to.be.greaterThan(0);
    expect(connection).to.equal('ECONNRESET');
    expect(switchMoves.before).to.be.greaterThan(0);
    expect(targetMessages).not.to.have.property('gratuitous arp-request'); // it is the IPv6 messages of the kernel that disturb
    expect(targetMessages['multicast-report']).to.be.greaterThan(0);
  });

  it('does not disturb hosts that know the guest if it has its own MAC address', () => {
    expectCalm(moved('bridge, own MACs'));
  });

  it('answers hosts that ask for the guest for the first time', () => {
    const { ipv4, ipv6, targetMessages } = moved('bridge, own MACs, a stranger asks');
    expect(targetMessages).to.include.keys('arp-reply', 'ndp-advertisement');
    expect(ipv4.misdirected + ipv6.misdirected).to.be.greaterThan(0);
  });

  it('does not disturb any host if its kernel is quiet too', () => {
    const outcome = moved('bridge, own MACs, quiet, a stranger asks');
    expectCalm(outcome);
    expect(outcome.targetMessages).not.to.have.any.keys('arp-reply', 'ndp-advertisement', 'arp-request');
  });

  it('does not use an IPv6 address that the guest defends, if duplicate address detection is on', async () => {
    await startGuarded('careful', ['192.168.52.1/24', 'fd00:52::1/64']);
    await untilTarget('careful', /^does not use fd00:52::1\/64$/);
  });

  it('is rejected if duplicate address detection is on and IPv6 has a gateway', async () => {
    await startGuarded('stubborn', ['fd00:53::1/64'], 'fd00:53::ff');
    await untilTarget('stubborn', /podnet has address fd00:53::1 in DADFAILED state/);
  });

  it('takes packets and answers none if the network has no IPAM and it has the MAC address of the guest', () => {
    const { ipv4, ipv6, connection, switchMoves } = moved('layer 2, MAC in the spec');
    for (const { misdirected, lost } of [ipv4, ipv6]) {
      expect(misdirected).to.equal(0);
      expect(lost.setUp + lost.copy).to.be.greaterThan(0);
    }
    expect(switchMoves.before).to.be.greaterThan(0);
    expect(connection).to.equal('kept'); // nobody resets it
  });

  it('does not disturb any host, whatever its MAC address, if the network has no IPAM and the interface stays down', () => {
    expectCalm(moved('layer 2, MAC in the spec, disableContainerInterface'));
  });

  for (const name of HELD)
    it(`does not disturb any host if its port is held until the guest comes: ${name}`, () => {
      expectCalm(moved(`held: ${name}`));
    });

  it('needs its interface if the network has IPAM', async () => {
    const config = bridgeNetwork('bare', { type: 'static' }, { disableContainerInterface: true });
    await stage.createNetwork('bare', config);
    const pod = await stage.createPod('node-1', [{ name: 'bare', ips: ['192.168.51.1/24'] }]);
    const failure = await stage.networks.attach(pod).catch((error: unknown) => error);
    expect(String(failure)).to.include('cannot use IPAM when DisableContainerInterface flag is set');
  });

  /** Starts the source of a migration on a network with duplicate address detection. */
  async function startGuarded(name: string, addresses: readonly string[], gateway?: string): Promise<void> {
    for (const node of ['node-1', 'node-2']) await stage.wire.join(node, name);
    const ipam = { type: 'static', addresses: addresses.map((address) => ({ address, gateway })) };
    await stage.createNetwork(name, { cniVersion: '1.0.0', type: 'bridge', bridge: name, enabledad: true, ipam });
    const source = await stage.networks.attach(await stage.createPod('node-1', [{ name, interface: INTERFACE }]));
    await settled(source.location);
  }

  /** Repeats with other targets, because a probe is lost if the port of the bridge does not forward yet. */
  async function untilTarget(name: string, outcome: RegExp): Promise<void> {
    const attempt = async () => {
      const pod = await stage.createPod('node-2', [{ name, interface: INTERFACE }]);
      try {
        const { location } = await stage.networks.attach(pod);
        const failed = (await settled(location)).filter(({ dadFailed, linkLocal }) => dadFailed && !linkLocal);
        await stage.networks.detach(pod);
        return `does not use ${failed.map(({ address }) => address).join()}`;
      } catch (error) {
        return String(error);
      }
    };
    await untilValue(`a target that says ${outcome.source}`, attempt, (said) => outcome.test(said));
  }

  /** The addresses of a pod after duplicate address detection. */
  function settled(place: WireLocation): Promise<readonly AddressState[]> {
    return untilValue(
      `the addresses of ${place} to be settled`,
      async () => (await stage.wire.interfaces(place)).find(({ name }) => name === INTERFACE)!.addresses,
      (addresses) => addresses.every(({ tentative, dadFailed }) => dadFailed || !tentative),
    );
  }

  function moved(name: string): MigrationOutcome {
    const move = moves.get(name);
    if (move?.status !== 'fulfilled') throw move?.reason ?? new Error(`no move was observed of ${name}`);
    return move.value;
  }
});

/** Checks that nothing was lost or misdirected before the guest moved. */
function expectCalm({ ipv4, ipv6, connection, switchMoves }: MigrationOutcome): void {
  for (const { lost, misdirected, neighbourMoves } of [ipv4, ipv6]) {
    expect(misdirected).to.equal(0);
    expect(lost).to.include({ before: 0, setUp: 0, copy: 0 });
    expect(neighbourMoves.before).to.equal(0);
  }
  expect(connection).to.equal('kept');
  expect(switchMoves.before).to.equal(0);
}

describeStory('A live migration as a third host observes it', (story) => {
  itOnWire('moves the addresses of both families, and the removal of the source changes nothing', async (on) => {
    const network = await story().addresses.createNetwork('blue', ['10.20.60.0/24', 'fd00:60::/64']);
    await story().runVm('vm1', { data: 'blue' });
    const addresses = await story().addresses.waitForIPs('vm1.data');
    const { wire } = on.wire;
    const host = `seer-${story().namespace}`;
    await wire.addHost(host, bridgeOf(network), ['10.20.60.250/24', 'fd00:60::ff:250/64']);
    const bare = addresses.map((address) => address.replace(/\/.*/, ''));
    const pings = await Promise.all(bare.map((ip) => wire.startPing(`host/${host}`, ip, { intervalMs: 10 })));
    await story().migrate('vm1', 'Succeeded');
    const [launcher] = await story().launchers('vm1');
    await waitForWireAddresses({ ...on.bed, wire: on.wire }, launcher!, {
      interface: podInterfaceName('data'),
      addresses,
    });
    for (const ip of bare) {
      await untilValue(
        `${ip} to answer always`,
        () => wire.ping(`host/${host}`, ip),
        ({ lost, duplicates }) => lost === 0 && duplicates === 0,
      );
    }
    for (const [index, ping] of pings.entries()) {
      const { sent, received, lossRuns } = await ping.stop();
      console.log(`      ${bare[index]}: ${sent - received} of ${sent} lost, ${JSON.stringify(lossRuns)}`);
      expect(received).to.be.greaterThan(0);
    }
    await wire.removeHost(host);
  });

  // KubeVirt 1.9 answers DHCP after a migration
  if (!kubeVirtVersion().version.startsWith('v1.9.'))
    itOnBed(
      'is followed by a warning about the interface whose guest loses DHCP, as in KubeVirt before 1.9',
      async () => {
        await story().addresses.createNetwork('blue', ['10.20.61.0/24']);
        const macs = { fixed: '02:00:00:20:61:01' };
        await story().runVm('vm1', { data: 'blue', fixed: 'blue' }, { macs });
        await story().migrate('vm1', 'Succeeded');
        await story().waitForEvent('vm1', 'DHCPLostAfterMigration', /macAddress for "data": KubeVirt 1\.[78] /);
      },
    );

  itOnWire('reaches the guest behind a quiet launcher, before and after it', async (on) => {
    const name = `${story().namespace}-blue`;
    const ipam = { type: 'holdfast', subnets: [{ cidr: '10.20.62.0/24' }] };
    const plugins = [{ type: 'bridge', bridge: bridgeOf(name), allowPersistentIPs: true, ipam }, QUIET_SYSCTLS];
    await story().network('blue', { config: { cniVersion: '1.0.0', name, plugins } });
    await story().runVm('vm1', { data: 'blue' });
    const addresses = await story().addresses.waitForIPs('vm1.data');
    const { wire } = on.wire;
    const host = `quiet-${story().namespace}`;
    await wire.addHost(host, bridgeOf(name), ['10.20.62.250/24']);
    const untilAnswered = () =>
      untilValue(
        'the guest to answer',
        () => wire.ping(`host/${host}`, addresses[0]!.replace(/\/.*/, '')),
        ({ lost }) => lost === 0,
      );
    await untilAnswered();
    await story().migrate('vm1', 'Succeeded');
    const [launcher] = await story().launchers('vm1');
    await waitForWireAddresses({ ...on.bed, wire: on.wire }, launcher!, {
      interface: podInterfaceName('data'),
      addresses,
    });
    await untilAnswered();
    await wire.removeHost(host);
  });
});
