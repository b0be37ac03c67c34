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
    ['web', ['web-2', 'web', 'wbe', 'my-web'], ['web', 'wbe', 'web-2', 'my-web']],
  ] as const)
    it(`of "${text}" in ${names.slice(0, 3).join(', ')} are ${expected.join(', ') || 'none'}`, () => {
      expect(
        similarNames(
          text,
          names.map((name) => ({ name })),
        ),
      ).to.deep.equal(expected);
    });

  it('include those of which an alias is similar, ranked by the most similar text', () => {
    const pools = [
      { name: 'a', aliases: ['blue-2'] },
      { name: 'b', aliases: ['red', 'blue'] },
      { name: 'c', aliases: ['red'] },
    ];
    expect(similarNames('blue', pools)).to.deep.equal(['b', 'a']);
  });
});
