import { expect } from 'chai';
import { freshForMs } from './freshness.js';

const clock = { now: () => 100_000 };

describe('the time for which a table is current', () => {
  const table: { name: string; progress: number[]; expect: number }[] = [
    { name: 'begins with the last progress of its watches', progress: [100_000, 100_000], expect: 30_000 },
    { name: 'is that of the watch that is furthest behind', progress: [100_000, 80_000, 99_000], expect: 10_000 },
    { name: 'is over when that watch is too old', progress: [100_000, 69_999], expect: 0 },
    { name: 'has not begun while a watch has never had progress', progress: [100_000, 0], expect: 0 },
  ];
  for (const { name, progress, expect: wanted } of table) {
    it(name, () => {
      const sources = progress.map((lastProgress) => ({ lastProgress }));
      expect(freshForMs(sources, 30_000, clock)).to.equal(wanted);
    });
  }
});
