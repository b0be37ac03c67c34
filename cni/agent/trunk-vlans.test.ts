import { expect } from 'chai';
import { trunkVlans } from './stdin-config.js';

describe('the VLANs of a trunk', () => {
  const shown = (config: object) => trunkVlans({ ...config }).map(({ first, last }) => `${first}-${last}`);

  it('are single ones and ranges, joined', () => {
    const vlanTrunk = [
      { id: 101 },
      { minID: 200, maxID: 299 },
      { minID: 300, maxID: 310 },
      { id: 5, minID: 7, maxID: 8 },
    ];
    expect(shown({ vlanTrunk })).to.deep.equal(['5-5', '7-8', '101-101', '200-310']);
  });

  it('are without VLAN 0 and the VLAN of untagged frames, into which a tag would lead past the rules', () => {
    const vlanTrunk = [{ id: 0 }, { minID: 10, maxID: 12 }];
    expect(shown({ vlanTrunk, vlan: 11 })).to.deep.equal(['10-10', '12-12']);
    const all = [{ minID: 1, maxID: 4094 }];
    for (const vlan of [undefined, 0]) expect(shown({ vlanTrunk: all, vlan })).to.deep.equal(['2-4094']);
    expect(shown({ vlanTrunk: all, vlan: 2 })).to.deep.equal(['1-1', '3-4094']);
  });

  it('are none of what the plugin bridge refuses', () => {
    const vlanTrunk = [
      null,
      {},
      { id: '7' },
      { id: 4095 },
      { id: 1.5 },
      { minID: 9, maxID: 8 },
      { minID: 0, maxID: 9 },
    ];
    expect(shown({ vlanTrunk })).to.deep.equal([]);
    for (const other of [undefined, {}, 'all']) expect(shown({ vlanTrunk: other })).to.deep.equal([]);
  });
});
