import { expect } from 'chai';
import { type Sample, trendOf } from './usage.js';

const MINUTE_MS = 60_000;

/** One sample a minute. */
function samplesOf(values: readonly number[], pid = 1): Sample[] {
  return values.map((value, index) => ({ name: 'ipam-1', pid, at: index * MINUTE_MS, rssMiB: value, files: 30 }));
}

const minutes = Array.from({ length: 60 }, (_, minute) => minute);

describe('The trend of memory', () => {
  it('is flat if memory grows only while the process warms up, and despite single peaks', () => {
    const warmsUp = minutes.map((minute) => (minute < 15 ? 60 + 2 * minute : minute % 10 === 0 ? 140 : 90));
    const trend = trendOf(samplesOf(warmsUp), 'rssMiB');
    expect(trend).to.include({ isFlat: true, highest: 140 });
    expect(trend.growth).to.be.closeTo(0, 1);
  });

  it('is not flat if a process leaks half a mebibyte each minute', () => {
    const trend = trendOf(samplesOf(minutes.map((minute) => 80 + minute / 2)), 'rssMiB');
    expect(trend.growth).to.be.closeTo(22, 1);
    expect(trend.isFlat).to.equal(false);
  });

  it('is unknown for a process that was restarted, and for a short run', () => {
    const restarted = [...samplesOf(minutes, 1), ...samplesOf(minutes, 2)];
    expect(trendOf(restarted, 'rssMiB').growth).to.equal(undefined);
    expect(trendOf(samplesOf(minutes.slice(0, 10)), 'rssMiB').growth).to.equal(undefined);
  });
});
