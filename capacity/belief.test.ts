import { expect } from 'chai';
import { Belief } from './belief.js';

const SETTLE_MS = 1_000;

describe('what schedulers may believe that a node shows', () => {
  let belief: Belief;

  beforeEach(() => (belief = new Belief(SETTLE_MS)));

  it('is nothing at first', () => {
    expect([belief.shown, belief.most(0)]).to.deep.equal([undefined, 0]);
  });

  it('is more from the moment on that more is sent', () => {
    belief.see(3, '10', 0);
    belief.send(5, 10);
    expect([belief.shown, belief.most(10)]).to.deep.equal([3, 5]);
    belief.answered('11');
    expect([belief.shown, belief.most(10)]).to.deep.equal([5, 5]);
  });

  it('is what was answered last, while a later write has no answer', () => {
    belief.see(5, '10', 0);
    belief.send(2, 10);
    belief.answered('11');
    belief.send(4, 20);
    expect([belief.shown, belief.most(20)]).to.deep.equal([2, 5]);
    belief.see(4, '12', 30);
    expect(belief.shown).to.equal(4);
  });

  it('is less only once less was seen, and the settle time is over', () => {
    belief.see(5, '10', 0);
    belief.send(2, 10);
    belief.answered('11');
    expect([belief.shown, belief.most(100_000)]).to.deep.equal([2, 5]);
  });

  it('is less a settle time after less was seen', () => {
    belief.see(5, '10', 0);
    belief.send(2, 10);
    belief.see(2, '120', 20);
    expect(belief.most(20 + SETTLE_MS - 1)).to.equal(5);
    expect(belief.most(20 + SETTLE_MS)).to.equal(2);
  });

  it('includes what was written over before it was seen', () => {
    belief.see(1, '10', 0);
    belief.send(9, 10);
    belief.send(4, 20);
    belief.see(4, '130', 30);
    expect(belief.most(30)).to.equal(9);
    expect([belief.shown, belief.most(30 + SETTLE_MS)]).to.deep.equal([4, 4]);
  });

  it('is done with what is known to have been written over, though the watch never showed it', () => {
    belief.see(3, '5', 0);
    belief.send(9, 10);
    belief.answered('6');
    belief.send(3, 20);
    belief.answered('7');
    belief.see(3, '6', 30);
    expect([belief.shown, belief.most(40)]).to.deep.equal([3, 9]);
    belief.see(3, '7', 50);
    expect(belief.most(50)).to.equal(9);
    expect(belief.most(50 + SETTLE_MS)).to.equal(3);
  });

  it('includes what somebody else wrote', () => {
    belief.see(1, '10', 0);
    belief.see(50, '110', 10);
    belief.see(undefined, '120', 20);
    expect([belief.shown, belief.most(30)]).to.deep.equal([undefined, 50]);
    expect(belief.most(20 + SETTLE_MS)).to.equal(0);
  });

  it('leaves out what the API server refused', () => {
    belief.see(1, '10', 0);
    belief.send(9, 10);
    belief.refused();
    expect([belief.shown, belief.most(10)]).to.deep.equal([1, 1]);
  });

  it('leaves out what was sent long ago and never seen', () => {
    belief.see(1, '10', 0);
    belief.send(9, 10);
    expect(belief.most(59_000)).to.equal(9);
    expect([belief.most(61_000), belief.shown]).to.deep.equal([1, 1]);
  });
});
