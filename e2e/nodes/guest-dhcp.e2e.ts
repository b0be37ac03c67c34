import { expect } from 'chai';
import type { PoolSubnet } from '../../api/address-pool.js';
import { GUEST_CONFIGURED, RESPONDERS_NAMESPACE } from '../../api/names.js';
import { NETWORK_ATTACHMENT_DEFINITIONS, PODS } from '../../kube/resources.js';
import { untilValue } from '../../bed/processes/wait.js';
import { describeWithGuests } from '../../bed/story/nodes.js';
import { bareAddress } from '../../test/bare-address.js';

const SUBNETS = [{ cidr: '10.82.0.0/24', gateway: '10.82.0.1' }];
const MACS = ['02:00:00:00:82:01', '02:00:00:00:82:02'] as const;
/** dhcp6c asks for an address on eth1. */
const DHCP6C = `mkdir -p /var/lib/dhcpv6 && echo 'interface eth1 { send ia-na 1; }; id-assoc na 1 { };' > /run/dhcp6c.conf &&
  dhcp6c -c /run/dhcp6c.conf eth1`;

describeWithGuests('Guests that QEMU runs in launcher pods', (story, nodes) => {
  const responders: string[] = [];

  afterEach('remove responders', async () => {
    for (const name of responders.splice(0))
      await story().client.delete(NETWORK_ATTACHMENT_DEFINITIONS, { namespace: RESPONDERS_NAMESPACE, name });
  });

  it('get the address of their claim from responders on a layer-2 network, also after a stop, and reach each other', async function () {
    this.timeout(300_000);
    const network = `${story().namespace}-flat`;
    await createLayer2Network(network);
    const addresses = await Promise.all(['one', 'two'].map((name, index) => startGuest(name, MACS[index]!)));
    expect(new Set(await Promise.all(['one', 'two'].map(nodeOf)))).to.deep.equal(new Set(nodes().names));
    for (const [name, address] of [
      ['one', addresses[1]],
      ['two', addresses[0]],
    ] as const)
      expect(await (await guestOf(name)).run(`ping -c 3 -W 5 ${address!}`)).to.contain('3 packets received');
    await story().stop('one');
    await story().start('one');
    expect(await leaseOf('one')).to.equal(addresses[0]);
  });

  it('get the hostname and the DHCP options of their VM from responders', async function () {
    this.timeout(200_000);
    await createLayer2Network(`${story().namespace}-flat`);
    const data = {
      bootFileName: 'boot/web.efi',
      tftpServerName: 'tftp.example.org',
      ntpServers: ['10.82.0.123', '10.82.0.124'],
      privateOptions: [
        { option: 224, value: 'first' },
        { option: 254, value: 'last' },
      ],
    };
    const extras = { macs: { data: MACS[0] }, hostname: 'shop', dhcpOptions: { data } };
    await story().runVm('one', { data: 'flat' }, extras);
    await leaseOf('one');
    const hex = (text: string) => Buffer.from(text).toString('hex');
    expect(await (await guestOf('one')).run('cat /run/options-eth1')).to.equal(
      `hostname=shop tftp=tftp.example.org bootfile=boot/web.efi ntp=10.82.0.123 10.82.0.124 224=${hex('first')} 254=${hex('last')}\n`,
    );
  });

  it('get their IPv6 address by DHCPv6, and its prefix from router advertisements without a default route', async function () {
    this.timeout(200_000);
    await createLayer2Network(`${story().namespace}-flat`, [...SUBNETS, { cidr: 'fd00:82::/64' }]);
    await story().runVm('one', { data: 'flat' }, { macs: { data: MACS[0] } });
    const addresses = (await story().addresses.waitForIPs('one.data')).map(bareAddress);
    const guest = await guestOf('one');
    await guest.waitAddress(
      'eth1',
      addresses.find((each) => !each.includes(':'))!,
    );
    const routes = () => guest.run('ip -6 route show dev eth1');
    const found = await untilValue('the prefix on the link', routes, (text) => text.includes('fd00:82::/64'));
    expect(found).not.to.include('default');
    await guest.run(DHCP6C);
    await guest.waitAddress(
      'eth1',
      addresses.find((each) => each.includes(':'))!,
    );
    await story().addresses.waitForCondition('one.data', GUEST_CONFIGURED, 'True');
  });

  it('get the addresses of their claim and of the masquerade binding from the DHCP servers of KubeVirt', async function () {
    this.timeout(200_000);
    await nodes().createNetwork('blue', ['10.81.1.0/28']);
    await story().runVm('one', { data: 'blue' });
    const [address = ''] = await story().addresses.waitForIPs('one.data');
    const guest = await guestOf('one');
    await guest.waitAddress('eth1', bareAddress(address));
    await guest.waitAddress('eth0', '10.0.2.2');
    const [launcher] = await story().launchers('one');
    expect(await nodes().addressOf(launcher!, 'eth0')).to.equal(`${launcher!.status?.podIP ?? ''}/24`);
    expect(await guest.run('ping -c 1 -W 5 10.96.0.1')).to.contain('1 packets received');
  });

  async function createLayer2Network(network: string, subnets: PoolSubnet[] = SUBNETS): Promise<void> {
    const bridge = await nodes().connectBridge(network);
    const silent = { type: 'tuning', sysctl: { 'net.ipv6.conf.IFNAME.disable_ipv6': '1' } };
    const config = { cniVersion: '1.0.0', name: network, plugins: [{ type: 'bridge', bridge }, silent] };
    await story().client.create(NETWORK_ATTACHMENT_DEFINITIONS, {
      metadata: { namespace: RESPONDERS_NAMESPACE, name: network },
      spec: { config: JSON.stringify(config) },
    });
    responders.push(network);
    await story().addresses.createPool(network, { network, subnets, guest: { attachment: network, dhcp: {} } });
    const plugin = { type: 'bridge', bridge, disableContainerInterface: true, allowPersistentIPs: true };
    await story().network('flat', { config: { cniVersion: '1.0.0', name: network, ...plugin } });
    await untilValue(
      'two responders to run',
      () => story().client.list(PODS, { namespace: RESPONDERS_NAMESPACE }),
      ({ items }) => items.filter(({ status }) => status?.phase === 'Running').length === 2,
      { timeoutMs: 90_000 },
    );
  }

  async function startGuest(name: string, mac: string): Promise<string> {
    await story().runVm(name, { data: 'flat' }, { macs: { data: mac } });
    return leaseOf(name);
  }

  /** Waits until the guest has the address of its claim. @returns it */
  async function leaseOf(name: string): Promise<string> {
    const [address = ''] = await story().addresses.waitForIPs(`${name}.data`);
    await (await guestOf(name)).waitAddress('eth1', bareAddress(address));
    await story().addresses.waitForCondition(`${name}.data`, GUEST_CONFIGURED, 'True');
    return bareAddress(address);
  }

  const guestOf = async (name: string) => nodes().guest(await story().waitRunning(name));
  const nodeOf = async (name: string) => (await story().launchers(name))[0]?.spec?.nodeName;
});
