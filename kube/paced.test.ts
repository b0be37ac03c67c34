import { expect } from 'chai';
import { ManualClock } from '../test/manual-clock.js';
import { pacedBy } from './paced.js';

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
