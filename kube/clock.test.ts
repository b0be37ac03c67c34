import { expect } from 'chai';
import sinon from 'sinon';
import { ManualClock } from '../test/manual-clock.js';
import { pacedBy, systemClock } from './clock.js';

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

  it('waits, and does not run at once, if a delay is longer than a timer of Node can be', () => {
    const time = sinon.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      let ran = 0;
      for (const ms of [2_592_000_000, Infinity, NaN]) systemClock.setTimer(ms, () => ran++);
      void systemClock.sleep(2_592_000_000).then(() => ran++);
      time.tick(2 ** 31 - 2);
      expect(ran).to.equal(0);
      time.tick(1);
      expect(ran).to.equal(3);
    } finally {
      time.restore();
    }
  });
});

describe('Paced work', () => {
  it('runs in a later turn, and at most every 50 ms', () => {
    const clock = new ManualClock(1_000);
    const ranAt: number[] = [];
    const schedule = pacedBy(clock);
    const run = () => {
      ranAt.push(clock.now());
      if (ranAt.length < 3) schedule(run);
    };
    schedule(run);
    expect(ranAt).to.deep.equal([]);
    for (let now = 1_000; now <= 1_200; now += 10) clock.advanceTo(now);
    expect(ranAt).to.deep.equal([1_000, 1_050, 1_100]);
  });
});
