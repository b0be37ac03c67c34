import { expect } from 'chai';
import { segmentsOfConfig } from './segments.js';

const CASES: { name: string; config: unknown; segments: { name: string; as: string }[] }[] = [
  { name: 'a bridge', config: { type: 'bridge', bridge: 'br1' }, segments: [{ name: 'br1', as: 'bridge' }] },
  {
    name: 'a list of plugins',
    config: { plugins: [{ type: 'bridge', bridge: 'br1' }, { type: 'tuning' }] },
    segments: [{ name: 'br1', as: 'bridge' }],
  },
  { name: 'macvlan', config: { type: 'macvlan', master: 'nic1' }, segments: [{ name: 'nic1', as: 'nic' }] },
  { name: 'the bridge that each node has for itself', config: { type: 'bridge', bridge: 'cni0' }, segments: [] },
  { name: 'a bridge without a name, which is cni0', config: { type: 'bridge' }, segments: [] },
  { name: 'a name that no interface can have', config: { type: 'bridge', bridge: 'b'.repeat(16) }, segments: [] },
  { name: 'another plugin', config: { type: 'ovs', bridge: 'br1' }, segments: [] },
];

describe('The segments of a network', () => {
  for (const { name, config, segments } of CASES) {
    it(`are found for ${name}`, () => {
      expect(segmentsOfConfig(JSON.stringify(config))).to.deep.equal(segments);
    });
  }

  it('are empty for a config that is not JSON', () => {
    expect(segmentsOfConfig('{')).to.deep.equal([]);
  });
});
