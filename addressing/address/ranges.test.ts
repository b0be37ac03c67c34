import { expect } from 'chai';
import fc from 'fast-check';
import { type Range, RangeSet, toSafeNumber } from './ranges.js';

const UNIVERSE = 40;
const NUMBERS = Array.from({ length: UNIVERSE }, (_, i) => BigInt(i));

/** Ranges of a small universe; some are empty, many touch or overlap. */
const written: fc.Arbitrary<Range[]> = fc.array(
  fc.record({ first: fc.bigInt(0n, BigInt(UNIVERSE - 1)), last: fc.bigInt(0n, BigInt(UNIVERSE - 1)) }),
  { maxLength: 8 },
);

function naive(ranges: readonly Range[]): Set<bigint> {
  return new Set(NUMBERS.filter((number) => ranges.some(({ first, last }) => first <= number && number <= last)));
}

/** That the set holds exactly these numbers, in the one form that it may have. */
function expectNumbers(set: RangeSet, numbers: ReadonlySet<bigint>): void {
  expect(NUMBERS.filter((number) => set.has(number))).to.deep.equal(NUMBERS.filter((number) => numbers.has(number)));
  expect(set.size).to.equal(BigInt(numbers.size));
  for (const [i, { first, last }] of set.ranges.entries()) {
    expect(first <= last).to.equal(true);
    const previous = set.ranges[i - 1];
    if (previous !== undefined) expect(first > previous.last + 1n).to.equal(true);
  }
}

describe('RangeSet', () => {
  it('contains the union of its ranges', () => {
    fc.assert(fc.property(written, (ranges) => expectNumbers(RangeSet.of(ranges), naive(ranges))));
  });

  it('has union, intersection and difference like sets of numbers', () => {
    fc.assert(
      fc.property(written, written, (left, right) => {
        const [a, b] = [RangeSet.of(left), RangeSet.of(right)];
        const [x, y] = [naive(left), naive(right)];
        expectNumbers(a.union(b), new Set([...x, ...y]));
        expectNumbers(a.intersect(b), new Set([...x].filter((number) => y.has(number))));
        expectNumbers(a.subtract(b), new Set([...x].filter((number) => !y.has(number))));
        for (const range of right) {
          const meets = [...naive([range])].some((number) => x.has(number));
          if (range.first <= range.last) expect(a.overlaps(range)).to.equal(meets);
        }
        expect(a.firstShared(b)).to.equal(NUMBERS.find((number) => x.has(number) && y.has(number)));
        expect(a.subtract(b).isEmpty).to.equal([...x].every((number) => y.has(number)));
      }),
    );
  });

  it('is immutable, and does not depend on its input afterwards', () => {
    const ranges = [{ first: 1n, last: 5n }];
    const set = RangeSet.of(ranges);
    ranges.push({ first: 8n, last: 9n });
    set.subtract(RangeSet.of([{ first: 2n, last: 3n }]));
    set.union(RangeSet.of(ranges));
    expect(set.ranges).to.deep.equal([{ first: 1n, last: 5n }]);
  });

  it('stores all IPv6 addresses as one range', () => {
    const all = RangeSet.of([{ first: 0n, last: 2n ** 128n - 1n }]);
    expect(all.size).to.equal(2n ** 128n);
    const holed = all.subtract(RangeSet.of([{ first: 2n ** 64n, last: 2n ** 64n }]));
    expect(holed.ranges).to.have.lengthOf(2);
    expect(holed.union(RangeSet.of([{ first: 2n ** 64n, last: 2n ** 64n }])).ranges).to.deep.equal(all.ranges);
  });

  it('has an empty set that is neutral for all operations', () => {
    const set = RangeSet.of([{ first: 1n, last: 1n }]);
    expect(RangeSet.EMPTY.isEmpty).to.equal(true);
    expect(RangeSet.of([{ first: 2n, last: 1n }])).to.equal(RangeSet.EMPTY);
    expect(RangeSet.EMPTY.subtract(set).isEmpty).to.equal(true);
    expect(set.subtract(RangeSet.EMPTY).isEmpty).to.equal(false);
    expect(set.subtract(set).isEmpty).to.equal(true);
    expect(RangeSet.EMPTY.subtract(set).isEmpty).to.equal(true);
  });
});

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
