import { expect } from 'chai';
import sinon from 'sinon';
import { systemClock } from './clock.js';

describe("the system's clock", () => {
  it('measures ages and deadlines correctly when the time of day is set', () => {
    const before = { now: systemClock.now(), wall: systemClock.wall() };
    const set = sinon.stub(Date, 'now').returns(before.wall - 300_000);
    try {
      expect(systemClock.wall()).to.equal(before.wall - 300_000);
      expect(systemClock.now()).to.be.at.least(before.now);
    } finally {
      set.restore();
    }
  });

  it('is far from 0 in a new process, so that 0 means long ago', () => {
    expect(systemClock.now()).to.be.greaterThan(Date.UTC(2020, 0, 1));
  });
});
