import { expect } from 'chai';
import fc from 'fast-check';
import { OccupiedSet } from './occupied-set.js';

/** Every `step`-th value, in a random-looking but fixed order: `factor` and `count` have no common divisor. */
function* scattered(count: number, step: bigint, factor = 7919): Iterable<bigint> {
  for (let n = 0; n < count; n++) yield BigInt((n * factor) % count) * step;
}

type Operation = { do: 'add' | 'delete' | 'has'; value: number } | { do: 'free' | 'count'; from: number; to: number };

/** Far from 0 and across the 64-bit boundary, as IPv6 addresses may be. */
const ORIGIN = (1n << 64n) - 20n;
const value = fc.nat({ max: 60 });
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('add', 'delete', 'has'), value }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('free', 'count'), from: value, to: value }) },
);

describe('OccupiedSet', () => {
  it('merges neighbours into one run, in any order', () => {
    const ascending = new OccupiedSet();
    const shuffled = new OccupiedSet();
    for (let n = 0; n < 10_000; n++) ascending.add(BigInt(n));
    for (const one of scattered(10_000, 1n)) shuffled.add(one);
    for (const set of [ascending, shuffled]) {
      expect([set.size, set.runCount]).to.deep.equal([10_000, 1]);
      expect(set.firstFree(0n, 20_000n)).to.equal(10_000n);
      expect(set.firstFree(0n, 9_999n)).to.equal(undefined);
    }
  });

  it('splits a run if a value in its middle is deleted', () => {
    const set = new OccupiedSet();
    for (const one of [1n, 2n, 3n]) set.add(one);
    expect(set.delete(2n)).to.equal(true);
    expect([set.has(1n), set.has(2n), set.has(3n), set.runCount]).to.deep.equal([true, false, true, 2]);
    expect(set.firstFree(1n, 3n)).to.equal(2n);
  });

  it('returns whether a value was added or deleted', () => {
    const set = new OccupiedSet();
    expect([set.add(5n), set.add(5n), set.delete(5n), set.delete(5n)]).to.deep.equal([true, false, true, false]);
    expect([set.size, set.runCount]).to.deep.equal([0, 0]);
  });

  it('stores many runs, and frees their memory', () => {
    const set = new OccupiedSet();
    const count = 20_000;
    for (const one of scattered(count, 3n)) set.add(one);
    expect([set.size, set.runCount]).to.deep.equal([count, count]);
    for (const one of scattered(count, 3n, 104_729)) {
      expect(set.delete(one)).to.equal(true);
      expect(set.has(one)).to.equal(false);
    }
    expect([set.size, set.runCount]).to.deep.equal([0, 0]);
  });

  it('keeps runs in order when chunks shrink', () => {
    const set = new OccupiedSet();
    const model = new Set<bigint>();
    for (const one of scattered(5_000, 2n)) set.add(one);
    for (let n = 0n; n < 10_000n; n += 2n) {
      if (n % 322n === 0n) model.add(n);
      else set.delete(n);
    }
    expect(set.size).to.equal(model.size);
    for (let n = 0n; n < 10_000n; n++) expect(set.has(n), String(n)).to.equal(model.has(n));
    expect(set.countIn(0n, 10_000n)).to.equal(model.size);
  });

  it('behaves like a plain set', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 120 }), (operations) => {
        const set = new OccupiedSet();
        const model = new Set<bigint>();
        for (const one of operations) compare(set, model, one);
        expect(set.size).to.equal(model.size);
        expect(set.runCount).to.equal([...model].filter((each) => !model.has(each - 1n)).length);
      }),
      { numRuns: 300 },
    );
  });
});

function compare(set: OccupiedSet, model: Set<bigint>, operation: Operation): void {
  switch (operation.do) {
    case 'add': {
      const one = ORIGIN + BigInt(operation.value);
      expect(set.add(one)).to.equal(!model.has(one));
      model.add(one);
      return;
    }
    case 'delete': {
      const one = ORIGIN + BigInt(operation.value);
      expect(set.delete(one)).to.equal(model.delete(one));
      return;
    }
    case 'has': {
      const one = ORIGIN + BigInt(operation.value);
      expect(set.has(one)).to.equal(model.has(one));
      return;
    }
    case 'free':
    case 'count':
      compareSpan(set, model, [ORIGIN + BigInt(operation.from), ORIGIN + BigInt(operation.to)]);
  }
}

function compareSpan(set: OccupiedSet, model: Set<bigint>, [from, to]: [bigint, bigint]): void {
  const values: bigint[] = [];
  for (let each = from; each <= to; each++) values.push(each);
  expect(set.firstFree(from, to)).to.equal(values.find((each) => !model.has(each)));
  expect(set.countIn(from, to)).to.equal(values.filter((each) => model.has(each)).length);
}
