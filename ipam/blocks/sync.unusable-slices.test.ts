import { expect } from 'chai';
import { parseCidr } from '../../addressing/address/cidr.js';
import { UnusableSlices } from './sync.js';

const NOW = Date.UTC(2026, 0, 1);
const SLICE = parseCidr('10.0.0.64/26');

describe('unusable slices', () => {
  it('are not assigned for five minutes', () => {
    const unusable = new UnusableSlices();
    unusable.add('blue', SLICE, NOW);
    expect(unusable.of('blue', NOW + 299_999)[4].has(SLICE.base)).to.equal(true);
    expect(unusable.of('blue', NOW + 300_000)[4].isEmpty).to.equal(true);
    expect(unusable.of('red', NOW)[4].isEmpty).to.equal(true);
  });

  it('are distinguished by family', () => {
    const unusable = new UnusableSlices();
    unusable.add('blue', parseCidr('::a00:40/122'), NOW);
    expect(unusable.of('blue', NOW)[4].isEmpty).to.equal(true);
    expect(unusable.of('blue', NOW)[6].has(SLICE.base)).to.equal(true);
  });
});
