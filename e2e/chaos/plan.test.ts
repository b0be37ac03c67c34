import { expect } from 'chai';
import { seededRandom } from '../../test/seeded-random.js';
import { RANDOM_FAULT_KINDS, planFaults, type PlannedFault } from './plan.js';

function first(count: number, seed: number): PlannedFault[] {
  const plans = planFaults(seededRandom(seed));
  return Array.from({ length: count }, () => plans.next().value);
}

describe('The plan of faults', () => {
  it('is the same for the same seed, and another one for another seed', () => {
    expect(first(50, 7)).to.deep.equal(first(50, 7));
    expect(first(50, 7)).to.not.deep.equal(first(50, 8));
  });

  it('contains every kind of fault sooner or later', () => {
    expect(new Set(first(200, 1).map(({ kind }) => kind))).to.deep.equal(new Set(RANDOM_FAULT_KINDS));
  });
});
