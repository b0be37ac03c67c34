import { expect } from 'chai';
import { AdvertisedCapacity } from './advertised-capacity.js';

const SETTLE_MS = 1_000;

describe('what schedulers may believe that a node shows', () => {
  let belief: AdvertisedCapacity;

  beforeEach(() => (belief = new AdvertisedCapacity(SETTLE_MS)));

  it('is nothing at first', () => {
    expect([belief.expected, belief.highest(0)]).to.deep.equal([undefined, 0]);
  });

  it('is more from the moment on that more is sent', () => {
    belief.observe(3, '10', 0);
    belief.beginWrite(5, 10);
    expect([belief.expected, belief.highest(10)]).to.deep.equal([3, 5]);
    belief.writeSucceeded('11');
    expect([belief.expected, belief.highest(10)]).to.deep.equal([5, 5]);
  });

  it('is what was answered last, while a later write has no answer', () => {
    belief.observe(5, '10', 0);
    belief.beginWrite(2, 10);
    belief.writeSucceeded('11');
    belief.beginWrite(4, 20);
    expect([belief.expected, belief.highest(20)]).to.deep.equal([2, 5]);
    belief.observe(4, '12', 30);
    expect(belief.expected).to.equal(4);
  });

  it('is less only once less was seen, and the settle time is over', () => {
    belief.observe(5, '10', 0);
    belief.beginWrite(2, 10);
    belief.writeSucceeded('11');
    expect([belief.expected, belief.highest(100_000)]).to.deep.equal([2, 5]);
  });

  it('is less a settle time after less was seen', () => {
    belief.observe(5, '10', 0);
    belief.beginWrite(2, 10);
    belief.observe(2, '120', 20);
    expect(belief.highest(20 + SETTLE_MS - 1)).to.equal(5);
    expect(belief.highest(20 + SETTLE_MS)).to.equal(2);
  });

  it('includes what was written over before it was seen', () => {
    belief.observe(1, '10', 0);
    belief.beginWrite(9, 10);
    belief.beginWrite(4, 20);
    belief.observe(4, '130', 30);
    expect(belief.highest(30)).to.equal(9);
    expect([belief.expected, belief.highest(30 + SETTLE_MS)]).to.deep.equal([4, 4]);
  });

  it('is done with what is known to have been written over, though the watch never showed it', () => {
    belief.observe(3, '5', 0);
    belief.beginWrite(9, 10);
    belief.writeSucceeded('6');
    belief.beginWrite(3, 20);
    belief.writeSucceeded('7');
    belief.observe(3, '6', 30);
    expect([belief.expected, belief.highest(40)]).to.deep.equal([3, 9]);
    belief.observe(3, '7', 50);
    expect(belief.highest(50)).to.equal(9);
    expect(belief.highest(50 + SETTLE_MS)).to.equal(3);
  });

  it('includes what somebody else wrote', () => {
    belief.observe(1, '10', 0);
    belief.observe(50, '110', 10);
    belief.observe(undefined, '120', 20);
    expect([belief.expected, belief.highest(30)]).to.deep.equal([undefined, 50]);
    expect(belief.highest(20 + SETTLE_MS)).to.equal(0);
  });

  it('leaves out what the API server refused', () => {
    belief.observe(1, '10', 0);
    belief.beginWrite(9, 10);
    belief.writeRejected();
    expect([belief.expected, belief.highest(10)]).to.deep.equal([1, 1]);
  });

  it('leaves out what was sent long ago and never seen', () => {
    belief.observe(1, '10', 0);
    belief.beginWrite(9, 10);
    expect(belief.highest(59_000)).to.equal(9);
    expect([belief.highest(61_000), belief.expected]).to.deep.equal([1, 1]);
  });
});
