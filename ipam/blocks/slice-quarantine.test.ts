import { expect } from 'chai';
import { parseCidr } from '../core/cidr.js';
import { SliceQuarantine } from './slice-quarantine.js';

const NOW = Date.UTC(2026, 0, 1);
const SLICE = parseCidr('10.0.0.64/26');

describe('slices that cannot be lent', () => {
  it('are left out for five minutes', () => {
    const spoiled = new SliceQuarantine();
    spoiled.add('blue', SLICE, NOW);
    expect(spoiled.of('blue', NOW + 299_999)[4].has(SLICE.base)).to.equal(true);
    expect(spoiled.of('blue', NOW + 300_000)[4].isEmpty).to.equal(true);
    expect(spoiled.of('red', NOW)[4].isEmpty).to.equal(true);
  });

  it('are of one family: an address of the other one may be the same number', () => {
    const spoiled = new SliceQuarantine();
    spoiled.add('blue', parseCidr('::a00:40/122'), NOW);
    expect(spoiled.of('blue', NOW)[4].isEmpty).to.equal(true);
    expect(spoiled.of('blue', NOW)[6].has(SLICE.base)).to.equal(true);
  });
});
