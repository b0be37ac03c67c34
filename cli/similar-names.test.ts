import { expect } from 'chai';
import { similarNames } from './similar-names.js';

describe('similar names', () => {
  for (const [text, names, expected] of [
    ['wbe', ['web', 'db'], ['web']],
    ['weeb', ['web', 'db'], ['web']],
    ['wb', ['web', 'db'], ['db', 'web']],
    ['Web', ['web'], ['web']],
    ['web', ['web-1', 'web-2', 'db'], ['web-1', 'web-2']],
    ['web-1', ['web'], ['web']],
    ['shop', ['eu-shop', 'eu-chop'], ['eu-shop']],
    ['zebra', ['web', 'db'], []],
    ['a', Array.from({ length: 9 }, (_, index) => `a${index}`), ['a0', 'a1', 'a2', 'a3', 'a4']],
  ] as const)
    it(`of "${text}" in ${names.slice(0, 3).join(', ')} are ${expected.join(', ') || 'none'}`, () => {
      expect(similarNames(text, names)).to.deep.equal(expected);
    });
});
