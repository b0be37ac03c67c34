import { expect } from 'chai';
import { ordinalInterfaceName, podInterfaceName } from './pod-interface.js';

describe('the names of pod interfaces', () => {
  const cases = [
    { given: 'data', expect: 'pod3a6eb0790f3' },
    { given: 'one', expect: 'pod7692c3ad354' },
    { given: 'Data_Net', expect: 'pod8b5bf689ad3' },
  ];
  for (const { given, expect: expected } of cases) {
    it(`are those that KubeVirt generates: ${given} → ${expected}`, () => {
      expect(podInterfaceName(given)).to.equal(expected);
    });
  }

  it('fit into the 15 characters of a Linux interface name', () => {
    expect(podInterfaceName('n'.repeat(300))).to.have.length(14);
  });

  it('are ordinal, counted from 1, in old pods', () => {
    expect(ordinalInterfaceName(2)).to.equal('net2');
  });
});
