import { expect } from 'chai';
import { parseCidr } from '../core/cidr.js';
import { SliceQuarantine } from './slice-quarantine.js';

const NOW = Date.UTC(2026, 0, 1);
const SLICE = parseCidr('10.0.0.64/26');

describe('slices in quarantine', () => {
  it('are not assigned for five minutes', () => {
    const quarantine = new SliceQuarantine();
    quarantine.add('blue', SLICE, NOW);
    expect(quarantine.of('blue', NOW + 299_999)[4].has(SLICE.base)).to.equal(true);
    expect(quarantine.of('blue', NOW + 300_000)[4].isEmpty).to.equal(true);
    expect(quarantine.of('red', NOW)[4].isEmpty).to.equal(true);
  });

  it('are distinguished by family', () => {
    const quarantine = new SliceQuarantine();
    quarantine.add('blue', parseCidr('::a00:40/122'), NOW);
    expect(quarantine.of('blue', NOW)[4].isEmpty).to.equal(true);
    expect(quarantine.of('blue', NOW)[6].has(SLICE.base)).to.equal(true);
  });
});
