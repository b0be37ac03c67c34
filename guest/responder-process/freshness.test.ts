import { expect } from 'chai';
import { Freshness } from './freshness.js';

/** A table whose watches had their last progress at these times. */
class Bench {
  readonly sources: { lastProgress: number }[];
  readonly freshness: Freshness;
  now = 100_000;

  constructor(...progress: number[]) {
    this.sources = progress.map((lastProgress) => ({ lastProgress }));
    this.freshness = new Freshness(this.sources, 30_000, { now: () => this.now });
  }

  build(): void {
    this.freshness.built(this.freshness.begin());
  }

  /** All watches show that they are current. */
  progress(now: number): void {
    this.now = now;
    for (const source of this.sources) source.lastProgress = now;
  }
}

describe('the time for which a table is current', () => {
  const table: { name: string; progress: number[]; expect: number }[] = [
    { name: 'begins with the last progress of its watches', progress: [100_000, 100_000], expect: 30_000 },
    { name: 'is that of the watch that is furthest behind', progress: [100_000, 80_000, 99_000], expect: 10_000 },
    { name: 'is over when that watch is too old', progress: [100_000, 69_999], expect: 0 },
    { name: 'has not begun while a watch has never had progress', progress: [100_000, 0], expect: 0 },
  ];
  for (const { name, progress, expect: wanted } of table) {
    it(name, () => {
      const { freshness } = new Bench(...progress);
      freshness.built(freshness.begin());
      expect(freshness.forMs()).to.equal(wanted);
    });
  }

  it('has not begun before the first table', () => {
    expect(new Bench(100_000).freshness.forMs()).to.equal(0);
  });

  it('continues with the watches while nothing changes', () => {
    const bench = new Bench(100_000, 100_000);
    bench.build();
    bench.progress(200_000);
    expect(bench.freshness.forMs()).to.equal(30_000);
  });

  it('runs out after a change that is in no table, for example because the pool is invalid', () => {
    const bench = new Bench(100_000, 100_000);
    bench.build();
    bench.progress(110_000);
    expect(bench.freshness.forMs()).to.equal(30_000);
    bench.freshness.changed();
    bench.progress(125_000);
    expect(bench.freshness.forMs(), '15 s after the table was last known to be current').to.equal(15_000);
    bench.progress(140_000);
    expect(bench.freshness.forMs()).to.equal(0);
  });

  it('is that of the beginning if something changed while the table was built', () => {
    const bench = new Bench(100_000, 100_000);
    const start = bench.freshness.begin();
    bench.progress(110_000);
    bench.freshness.changed();
    expect(bench.freshness.hasChangedSince(start)).to.equal(true);
    bench.freshness.built(start);
    expect(bench.freshness.forMs()).to.equal(20_000);
    bench.progress(115_000);
    expect(bench.freshness.forMs(), 'the next table has the change').to.equal(15_000);
  });

  it('continues with the watches if nothing changed while the table was built', () => {
    const bench = new Bench(100_000, 100_000);
    const start = bench.freshness.begin();
    bench.progress(110_000);
    bench.freshness.built(start);
    expect(bench.freshness.hasChangedSince(start)).to.equal(false);
    expect(bench.freshness.forMs()).to.equal(30_000);
  });

  it('begins again with the next table', () => {
    const bench = new Bench(100_000, 100_000);
    bench.build();
    bench.freshness.changed();
    bench.progress(140_000);
    bench.build();
    expect(bench.freshness.forMs()).to.equal(30_000);
  });
});
