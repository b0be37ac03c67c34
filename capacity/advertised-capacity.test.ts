import { expect } from 'chai';
import { AdvertisedCapacity } from './advertised-capacity.js';

const SETTLE_MS = 1_000;

describe('the advertised capacity that schedulers may see', () => {
  let advertised: AdvertisedCapacity;

  beforeEach(() => (advertised = new AdvertisedCapacity(SETTLE_MS)));

  it('is 0 at first', () => {
    expect([advertised.expected, advertised.highest(0)]).to.deep.equal([undefined, 0]);
  });

  it('increases as soon as a higher value is sent', () => {
    advertised.observe(3, '10', 0);
    advertised.beginWrite(5, 10);
    expect([advertised.expected, advertised.highest(10)]).to.deep.equal([3, 5]);
    advertised.writeSucceeded('11');
    expect([advertised.expected, advertised.highest(10)]).to.deep.equal([5, 5]);
  });

  it('expects the last answered value while a later write has no answer', () => {
    advertised.observe(5, '10', 0);
    advertised.beginWrite(2, 10);
    advertised.writeSucceeded('11');
    advertised.beginWrite(4, 20);
    expect([advertised.expected, advertised.highest(20)]).to.deep.equal([2, 5]);
    advertised.observe(4, '12', 30);
    expect(advertised.expected).to.equal(4);
  });

  it('decreases only after the watch shows a lower value and the settle time ends', () => {
    advertised.observe(5, '10', 0);
    advertised.beginWrite(2, 10);
    advertised.writeSucceeded('11');
    expect([advertised.expected, advertised.highest(100_000)]).to.deep.equal([2, 5]);
  });

  it('decreases after the settle time even if the write had no answer', () => {
    advertised.observe(5, '10', 0);
    advertised.beginWrite(2, 10);
    advertised.observe(2, '120', 20);
    expect(advertised.highest(20 + SETTLE_MS - 1)).to.equal(5);
    expect(advertised.highest(20 + SETTLE_MS)).to.equal(2);
  });

  it('includes a value that was overwritten before the watch showed it', () => {
    advertised.observe(1, '10', 0);
    advertised.beginWrite(9, 10);
    advertised.beginWrite(4, 20);
    advertised.observe(4, '130', 30);
    expect(advertised.highest(30)).to.equal(9);
    expect([advertised.expected, advertised.highest(30 + SETTLE_MS)]).to.deep.equal([4, 4]);
  });

  it('drops an overwritten value that the watch never showed after the settle time', () => {
    advertised.observe(3, '5', 0);
    advertised.beginWrite(9, 10);
    advertised.writeSucceeded('6');
    advertised.beginWrite(3, 20);
    advertised.writeSucceeded('7');
    advertised.observe(3, '6', 30);
    expect([advertised.expected, advertised.highest(40)]).to.deep.equal([3, 9]);
    advertised.observe(3, '7', 50);
    expect(advertised.highest(50)).to.equal(9);
    expect(advertised.highest(50 + SETTLE_MS)).to.equal(3);
  });

  it('includes values that other software wrote', () => {
    advertised.observe(1, '10', 0);
    advertised.observe(50, '110', 10);
    advertised.observe(undefined, '120', 20);
    expect([advertised.expected, advertised.highest(30)]).to.deep.equal([undefined, 50]);
    expect(advertised.highest(20 + SETTLE_MS)).to.equal(0);
  });

  it('excludes a value that the API server rejected', () => {
    advertised.observe(1, '10', 0);
    advertised.beginWrite(9, 10);
    advertised.writeRejected();
    expect([advertised.expected, advertised.highest(10)]).to.deep.equal([1, 1]);
  });

  it('excludes a value that was sent long ago and never seen', () => {
    advertised.observe(1, '10', 0);
    advertised.beginWrite(9, 10);
    expect(advertised.highest(59_000)).to.equal(9);
    expect([advertised.highest(61_000), advertised.expected]).to.deep.equal([1, 1]);
  });
});
