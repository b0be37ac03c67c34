import { expect } from 'chai';
import { toSafeNumber } from './safe-number.js';

describe('toSafeNumber', () => {
  for (const [count, expected] of [
    [0n, 0],
    [2n ** 53n - 1n, Number.MAX_SAFE_INTEGER],
    [2n ** 53n, Number.MAX_SAFE_INTEGER],
    [2n ** 128n, Number.MAX_SAFE_INTEGER],
  ] as const) {
    it(`returns ${expected} for ${count}`, () => expect(toSafeNumber(count)).to.equal(expected));
  }
});
