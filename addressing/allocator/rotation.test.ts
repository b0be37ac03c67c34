import { expect } from 'chai';
import fc from 'fast-check';
import { VacatedQueue } from './rotation.js';

describe('VacatedQueue', () => {
  it('returns the oldest value first, and a value that was vacated again last', () => {
    const order = new VacatedQueue();
    for (const one of [1n, 2n, 3n, 1n]) order.add(one);
    expect([...order.values()]).to.deep.equal([2n, 3n, 1n]);
    expect(order.oldest()).to.equal(2n);
  });

  it('forgets the oldest values beyond its limit', () => {
    const order = new VacatedQueue(2);
    expect([order.add(1n), order.add(2n), order.add(3n)]).to.deep.equal([undefined, undefined, 1n]);
    expect([...order.values()]).to.deep.equal([2n, 3n]);
  });

  it('picks from the older half', () => {
    const order = new VacatedQueue();
    for (let n = 0n; n < 10n; n++) order.add(n);
    const picked = [0, 0.3, 0.6, 0.999].map((random) => order.pick(() => random));
    expect(picked).to.deep.equal([0n, 1n, 3n, 4n]);
    expect(new VacatedQueue().pick(() => 0)).to.equal(undefined);
  });

  it('keeps the order of a list for any sequence of adds and deletes', () => {
    const step = fc.record({ add: fc.boolean(), value: fc.bigInt({ min: 0n, max: 9n }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), fc.integer({ min: 1, max: 12 }), (steps, limit) => {
        const order = new VacatedQueue(limit);
        let model: bigint[] = [];
        for (const { add, value } of steps) {
          const without = model.filter((each) => each !== value);
          if (add) {
            model = [...without, value];
            expect(order.add(value)).to.equal(model.length > limit ? model.shift() : undefined);
          } else expect(order.delete(value)).to.equal(without.length < model.length);
          if (!add) model = without;
          expect(order.size).to.equal(model.length);
          expect(order.oldest()).to.equal(model[0]);
          expect([...order.values()]).to.deep.equal(model);
          expect(model.length === 0 || model.includes(order.pick(() => 0.5)!)).to.equal(true);
        }
      }),
    );
  });
});
