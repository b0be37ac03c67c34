import { expect } from 'chai';
import { describeValue, isRecord, asList, asRecord, recordsIn, asString } from './json.js';

describe('reading JSON that others wrote', () => {
  it('accepts neither lists nor null as objects', () => {
    expect([{}, [], null, 'x', undefined].map(isRecord)).to.deep.equal([true, false, false, false, false]);
  });

  it('returns an empty value for a value of another type', () => {
    expect([{ a: 1 }, [1], null, 'x', undefined].map(asRecord)).to.deep.equal([{ a: 1 }, {}, {}, {}, {}]);
    expect([{ a: 1 }, [1], null, 'x', undefined].map(asList)).to.deep.equal([[], [1], [], [], []]);
    expect([{ a: 1 }, [1], null, 'x', undefined].map(asString)).to.deep.equal(['', '', '', 'x', '']);
    expect(recordsIn([{ a: 1 }, [], null, 7, {}])).to.deep.equal([{ a: 1 }, {}]);
    expect(recordsIn({ a: {} })).to.deep.equal([]);
  });

  const deep = Array.from({ length: 100_000 }).reduce<unknown>((inner) => [inner], 0);
  const cases = [
    { given: undefined, expect: 'absent' },
    { given: null, expect: 'null' },
    { given: 7, expect: '7' },
    { given: true, expect: 'true' },
    { given: 'a "b"', expect: '"a \\"b\\""' },
    { given: 'x'.repeat(500), expect: `"${'x'.repeat(80)}"` },
    { given: { a: 1 }, expect: 'an object' },
    { given: deep, expect: 'a list' },
  ];
  for (const { given, expect: expected } of cases) {
    it(`describes a value in a few words: ${expected.slice(0, 20)}`, () => {
      expect(describeValue(given)).to.equal(expected);
    });
  }
});
