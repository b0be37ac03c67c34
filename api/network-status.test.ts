import { expect } from 'chai';
import { NETWORK_STATUS_ANNOTATION } from './names.js';
import { networkStatuses, reportedIPsOf } from './network-status.js';

describe('the network-status annotation', () => {
  const cases = [
    { name: 'is absent: nothing is attached', given: undefined, expect: [] },
    { name: 'is broken: nothing is known', given: '[{', expect: [] },
    { name: 'is no list: nothing is known', given: '{}', expect: [] },
    {
      name: 'holds odd entries: they are left out',
      given:
        '[null, 3, {"interface":"eth0"}, {"name":"vms/blue","interface":7}, {"name":"vms/blue","interface":"net1"}]',
      expect: [{ name: 'vms/blue', interface: 'net1' }],
    },
  ];
  for (const { name, given, expect: expected } of cases) {
    it(name, () => {
      const annotations = given === undefined ? {} : { [NETWORK_STATUS_ANNOTATION]: given };
      expect(networkStatuses({ metadata: { name: 'p', annotations } })).to.deep.equal(expected);
    });
  }

  it('is read as Multus writes it: also two interfaces of one NAD, and one without a name', () => {
    // SetNetworkStatus and CreateNetworkStatuses of network-attachment-definition-client v1.7.6, pkg/utils/net-attach-def.go
    const entries = [
      {
        name: 'cbr0',
        interface: 'eth0',
        ips: ['10.244.1.7'],
        mac: '02:00:00:00:00:01',
        default: true,
        dns: {},
        gateway: ['10.244.1.1'],
      },
      {
        name: 'vms/blue',
        interface: 'net1',
        ips: ['10.0.0.5', 'fd00::5'],
        mac: '02:00:00:00:00:02',
        mtu: 9000,
        dns: {},
      },
      { name: 'vms/pair', interface: 'net2', mac: '02:00:00:00:00:03', dns: {} },
      { name: 'vms/pair', interface: 'net2-b', ips: ['10.0.1.5'], mac: '02:00:00:00:00:04', dns: {} },
      { name: 'vms/userspace', dns: {}, 'device-info': { type: 'vhost-user', version: '1.1.0' } },
    ];
    const text = `[${entries.map((entry) => JSON.stringify(entry, null, 4)).join(',')}]`;
    const found = networkStatuses({ metadata: { name: 'p', annotations: { [NETWORK_STATUS_ANNOTATION]: text } } });
    expect(found.map((each) => [each.name, each.interface, reportedIPsOf(each)])).to.deep.equal([
      ['cbr0', 'eth0', ['10.244.1.7']],
      ['vms/blue', 'net1', ['10.0.0.5', 'fd00::5']],
      ['vms/pair', 'net2', []],
      ['vms/pair', 'net2-b', ['10.0.1.5']],
      ['vms/userspace', undefined, []],
    ]);
  });
});
