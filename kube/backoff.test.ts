import { expect } from 'chai';
import { backoff } from './backoff.js';

function delays(options: Parameters<typeof backoff>[0], count: number): number[] {
  const delay = backoff(options);
  return Array.from({ length: count }, () => delay.next());
}

describe('backoff', () => {
  const cases = [
    { name: 'doubles up to its limit', given: { random: () => 1 }, expect: [100, 200, 400, 500, 500] },
    { name: 'takes at most half of a delay away', given: { random: () => 0 }, expect: [50, 100, 200, 250, 250] },
    { name: 'grows by another factor', given: { random: () => 1, factor: 1.5 }, expect: [100, 150, 225, 337.5, 500] },
  ];
  for (const { name, given, expect: expected } of cases) {
    it(name, () => {
      expect(delays({ baseMs: 100, maxMs: 500, ...given }, 5)).to.deep.equal(expected);
    });
  }

  it('starts again after a reset', () => {
    const delay = backoff({ baseMs: 100, maxMs: 500, random: () => 1 });
    delay.next();
    delay.next();
    delay.reset();
    expect(delay.next()).to.equal(100);
  });
});
