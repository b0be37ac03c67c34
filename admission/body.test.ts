import { expect } from 'chai';
import { BodyBudget } from './body.js';

const KIB = 1024;
const neverEvicted = () => expect.fail('it was evicted');

describe('the budget of request bodies', () => {
  it('counts more than the bytes of each request, and is empty after all are released', () => {
    const budget = new BodyBudget(100 * KIB);
    const shares = [budget.open(neverEvicted), budget.open(neverEvicted)];
    for (const share of shares) {
      expect(share.add(10 * KIB)).to.equal(true);
      expect(share.add(10 * KIB)).to.equal(true);
    }
    expect(budget.used).to.equal(72 * KIB);
    for (const share of shares) {
      share.complete();
      share.release();
      share.release();
    }
    expect(budget.used).to.equal(0);
  });

  it('evicts only as many of the oldest incomplete bodies as necessary, and never a complete one', () => {
    const evicted: string[] = [];
    const budget = new BodyBudget(100 * KIB);
    const open = (name: string) => budget.open(() => evicted.push(name));
    const [complete, oldest, older, young] = [open('complete'), open('oldest'), open('older'), open('young')];
    complete.add(10 * KIB);
    complete.complete();
    oldest.add(10 * KIB);
    older.add(10 * KIB);
    expect(young.add(20 * KIB)).to.equal(true);
    expect(evicted).to.deep.equal(['oldest']);
    expect(young.add(60 * KIB)).to.equal(false);
    expect(evicted).to.deep.equal(['oldest', 'older']);
    expect(budget.used).to.equal((26 + 36) * KIB);
  });

  it('rejects more bytes of an old body instead of evicting a younger one', () => {
    const budget = new BodyBudget(100 * KIB);
    const [old, young] = [budget.open(neverEvicted), budget.open(neverEvicted)];
    old.add(10 * KIB);
    young.add(40 * KIB);
    expect(old.add(40 * KIB)).to.equal(false);
    expect(young.add(10 * KIB)).to.equal(true);
  });
});
