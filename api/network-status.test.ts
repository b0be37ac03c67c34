import { expect } from 'chai';
import { NETWORK_STATUS_ANNOTATION } from './names.js';
import { networkStatuses } from './network-status.js';

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
});
