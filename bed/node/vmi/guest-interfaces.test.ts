import { expect } from 'chai';
import { guestInterfaces } from './guest-interfaces.js';
import type { GuestInterface, Vmi, WantedInterface } from './virtual-machine-instance.js';

function vmi(wanted: WantedInterface[], reported: GuestInterface[]): Vmi {
  return {
    metadata: { namespace: 'vms', name: 'vm1', uid: 'vmi-uid' },
    spec: {
      networks: [
        { name: 'default', pod: {} },
        { name: 'data', multus: { networkName: 'blue' } },
        { name: 'main', multus: { networkName: 'green', default: true } },
      ],
      domain: { devices: { interfaces: wanted } },
    },
    status: { interfaces: reported },
  };
}

interface Case {
  name: string;
  wanted: WantedInterface;
  /** infoSource before, where the interface is reported. */
  before?: string;
  /** infoSource after; undefined: the interface is not reported. */
  expect: string | undefined;
}

const CASES: Case[] = [
  { name: 'is in the guest at once on the pod network', wanted: { name: 'default' }, expect: 'domain' },
  { name: 'is in the guest at once on the network in its place', wanted: { name: 'main' }, expect: 'domain' },
  { name: 'waits for Multus on a secondary network', wanted: { name: 'data' }, expect: undefined },
  {
    name: 'is plugged once Multus reports it',
    wanted: { name: 'data' },
    before: 'multus-status',
    expect: 'domain, multus-status',
  },
  {
    name: 'stays in the guest when Multus reports it no more',
    wanted: { name: 'data' },
    before: 'domain',
    expect: 'domain',
  },
  {
    name: 'is unplugged from the guest when its state is absent',
    wanted: { name: 'data', state: 'absent' },
    before: 'domain, multus-status',
    expect: 'multus-status',
  },
  {
    name: 'is removed when its state is absent and Multus has detached it',
    wanted: { name: 'data', state: 'absent' },
    before: 'domain',
    expect: undefined,
  },
];

describe('An interface of a guest', () => {
  for (const { name, wanted, before, expect: after } of CASES) {
    it(name, () => {
      const reported = before === undefined ? [] : [{ name: wanted.name, infoSource: before }];
      const [found] = guestInterfaces(vmi([wanted], reported));
      expect(found?.infoSource).to.equal(after);
    });
  }

  it('has the MAC address of the spec, or one that never changes', () => {
    const [asked] = guestInterfaces(vmi([{ name: 'default', macAddress: '02:00:00:00:00:01' }], []));
    expect(asked?.mac).to.equal('02:00:00:00:00:01');
    const given = vmi([{ name: 'default' }], []);
    expect(guestInterfaces(given)[0]?.mac).to.match(/^02(:[0-9a-f]{2}){5}$/);
    expect(guestInterfaces(given)).to.deep.equal(guestInterfaces(given));
  });

  it('has the MAC address of its first launcher with bridge binding, also after a migration', () => {
    const launcherWith = (mac: string) => [{ interface: 'pod3a6eb0790f3', mac }];
    const given = vmi([{ name: 'data', bridge: {} }], [{ name: 'data', infoSource: 'multus-status' }]);
    const first = guestInterfaces(given, launcherWith('02:00:00:00:00:01'));
    expect(first[0]?.mac).to.equal('02:00:00:00:00:01');
    const moved = guestInterfaces({ ...given, status: { interfaces: first } }, launcherWith('02:00:00:00:00:02'));
    expect(moved[0]?.mac).to.equal('02:00:00:00:00:01');
  });

  it('has no link-local address of the guest with masquerade', () => {
    const ips = ['10.0.2.2', '169.254.1.1', 'fe80::1', 'fd10::2'];
    const reports = (binding: object) => {
      const given = vmi([{ name: 'default', macAddress: '02:00:00:00:00:01', ...binding }], []);
      const agent = [{ name: 'eth0', mac: '02:00:00:00:00:01', ips }];
      return guestInterfaces(given, [], agent)[0]?.ipAddresses;
    };
    expect(reports({ masquerade: {} })).to.deep.equal(['10.0.2.2', 'fd10::2']);
    expect(reports({ bridge: {} })).to.deep.equal(ips);
  });

  it('has the form of libvirt for its MAC address, but that of the spec for an SR-IOV device', () => {
    const macAddress = '02-00-00-00-00-0A';
    const [emulated] = guestInterfaces(vmi([{ name: 'default', macAddress }], []));
    expect(emulated).to.include({ mac: '02:00:00:00:00:0a', queueCount: 1, linkState: 'up' });
    const [device] = guestInterfaces(vmi([{ name: 'default', macAddress, sriov: {} }], []));
    expect(device).to.deep.equal({ name: 'default', infoSource: 'domain', mac: macAddress });
  });

  it('has the addresses of its interface in the launcher, and keeps them while the launcher is not known', () => {
    const launcher = [
      { interface: 'eth0', default: true, ips: ['10.244.0.1'] },
      { interface: 'pod3a6eb0790f3', ips: ['10.0.0.5', '2001:db8::5'] },
    ];
    const given = vmi([{ name: 'default' }, { name: 'data' }], [{ name: 'data', infoSource: 'multus-status' }]);
    const reported = guestInterfaces(given, launcher);
    const addresses = (found: GuestInterface[]) => found.map(({ ipAddress, ipAddresses }) => [ipAddress, ipAddresses]);
    const expected = [
      ['10.244.0.1', ['10.244.0.1']],
      ['10.0.0.5', ['10.0.0.5', '2001:db8::5']],
    ];
    expect(addresses(reported)).to.deep.equal(expected);
    expect(addresses(guestInterfaces({ ...given, status: { interfaces: reported } }))).to.deep.equal(expected);
  });

  it('has no address any more that neither the launcher nor the agent reports', () => {
    const before = {
      name: 'data',
      infoSource: 'domain, multus-status',
      ipAddress: '10.0.0.5',
      ipAddresses: ['10.0.0.5'],
    };
    const [found] = guestInterfaces(vmi([{ name: 'data' }], [before]), []);
    expect(found).not.to.have.any.keys('ipAddress', 'ipAddresses');
  });

  it('keeps the name of the pod interface, which virt-controller reports', () => {
    const reported = { name: 'data', infoSource: 'multus-status', podInterfaceName: 'pod3a6eb0790f3' };
    for (const wanted of [{ name: 'data' }, { name: 'data', state: 'absent' }]) {
      expect(guestInterfaces(vmi([wanted], [reported]))[0]?.podInterfaceName).to.equal('pod3a6eb0790f3');
    }
  });
});
