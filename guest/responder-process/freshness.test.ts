import { expect } from 'chai';
import { TransportError } from '../../kube/errors.js';
import { silentLogger } from '../../kube/log.js';
import type { ConfigMap } from '../../kube/resources.js';
import type { ReadIndex } from '../responder-tables/published-index.js';
import { Freshness, readIndexLive } from './freshness.js';

const SET = 'holdfast-responder-01234567';
const INDEX = 'index-uid';

/** A responder with the table `v1`, at 100 s of its clock. */
class Bench {
  now = 100_000;
  readonly freshness = new Freshness(SET, 30_000, { now: () => this.now });

  read(at: number, beat: number, more: Partial<ReadIndex> = {}): void {
    this.freshness.read({ index: INDEX, beat, ageMs: 0, versions: { [SET]: 'v1' }, behind: {}, ...more }, at);
  }

  use(version = 'v1', beat?: number, ageMs = 0): void {
    this.freshness.use({ version, after: beat === undefined ? undefined : { index: INDEX, beat }, ageMs });
  }
}

describe('the time for which a table is current', () => {
  let bench: Bench;
  beforeEach(() => {
    bench = new Bench();
  });

  it('begins when a read began that showed no beat before the index with its version was prepared', () => {
    bench.use();
    bench.read(90_000, 5);
    bench.read(96_000, 7);
    expect(bench.freshness.forMs()).to.equal(20_000);
  });

  it('does not begin with a read that showed the beat before, because the index may have been prepared earlier', () => {
    bench.use();
    bench.read(80_000, 4);
    bench.read(90_000, 6);
    bench.read(96_000, 7);
    expect(bench.freshness.forMs(), 'since the read of beat 4').to.equal(10_000);
  });

  it('is shorter by the age of what guest had seen', () => {
    bench.use();
    bench.read(90_000, 5);
    bench.read(96_000, 7, { ageMs: 4_000 });
    expect(bench.freshness.forMs()).to.equal(16_000);
  });

  it('is shorter by the age of the last build while the table is behind, but not of another version', () => {
    bench.use();
    bench.read(90_000, 5);
    bench.read(96_000, 7, { versions: {}, behind: { [SET]: { version: 'v1', ageMs: 7_000 } } });
    expect(bench.freshness.forMs()).to.equal(13_000);
    bench.read(99_000, 9, { versions: {}, behind: { [SET]: { version: 'v2', ageMs: 0 } } });
    expect(bench.freshness.forMs()).to.equal(13_000);
  });

  it('has not begun before a second read, or while the index says nothing about the table', () => {
    bench.use();
    bench.read(90_000, 5);
    expect(bench.freshness.forMs()).to.equal(0);
    bench.read(96_000, 8, { versions: { [SET]: 'v2', other: 'v1' } });
    expect(bench.freshness.forMs()).to.equal(0);
  });

  it('has not begun before the first table', () => {
    bench.read(90_000, 5);
    bench.read(96_000, 8);
    expect(bench.freshness.forMs()).to.equal(0);
  });

  it('begins with the index that was read before the table came', () => {
    bench.read(90_000, 5);
    bench.read(96_000, 8);
    bench.use();
    expect(bench.freshness.forMs()).to.equal(20_000);
  });

  it('is what the table says about itself, until the index knows it', () => {
    bench.read(90_000, 5);
    bench.read(96_000, 8, { versions: {} });
    bench.use('v2', 8, 1_000);
    expect(bench.freshness.forMs(), 'beat 8 was written after the first read').to.equal(19_000);
    bench.use('v3', 9, 1_000);
    expect(bench.freshness.forMs(), 'beat 9 was written after the second read').to.equal(25_000);
  });

  it('is not that of the table before if the new one follows an older beat, as that of a former leader', () => {
    bench.use('v1');
    bench.read(90_000, 5);
    bench.read(96_000, 8);
    bench.use('v0', 3);
    expect(bench.freshness.forMs()).to.equal(0);
  });

  it('continues when the table comes again', () => {
    bench.use();
    bench.read(90_000, 5);
    bench.read(96_000, 8);
    bench.use('v1', 3);
    expect(bench.freshness.forMs()).to.equal(20_000);
  });

  it('has not begun if the statement is about another index', () => {
    bench.read(90_000, 5);
    bench.freshness.use({ version: 'v2', after: { index: 'another', beat: 9 }, ageMs: 0 });
    bench.freshness.use({ version: 'v2', after: undefined, ageMs: 0 });
    expect(bench.freshness.forMs()).to.equal(0);
  });

  for (const [name, index] of [
    ['of another index', { index: 'another', beat: 9 }],
    ['that count again, as after a restore', { beat: 4 }],
  ] as const) {
    it(`begins anew with beats ${name}`, () => {
      bench.read(90_000, 5);
      bench.use('v2', 9);
      bench.read(96_000, index.beat, { ...index, versions: { [SET]: 'v2' } });
      bench.now = 125_000;
      expect(bench.freshness.forMs(), 'nothing new is known').to.equal(0);
    });
  }

  it('does not begin if the age cannot be read', () => {
    bench.read(90_000, 5);
    bench.use('v2', 9, Number.NaN);
    expect(bench.freshness.forMs()).to.equal(0);
  });

  it('is over after the longest time', () => {
    bench.use();
    bench.read(90_000, 5);
    bench.read(96_000, 8);
    bench.now = 120_000;
    expect(bench.freshness.forMs()).to.equal(0);
  });
});

describe('the reads of the index', () => {
  it('count from their beginning, and show nothing new while etcd does not answer', async () => {
    let now = 100_000;
    const answers: (Error | ConfigMap)[] = [
      { metadata: { name: 'i', uid: INDEX }, data: { beat: '7', ageMs: '30', versions: '{"a":"v1"}' } }, // of an earlier release
      new TransportError('deadline', 'GET configmaps: no answer'),
    ];
    const seen: unknown[] = [];
    const reads: Parameters<typeof readIndexLive>[1] = {
      client: {
        get: (_resource, { name }) => {
          expect(name).to.equal('index-3');
          now += 1_000;
          const answer = answers.shift();
          return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as never);
        },
      },
      clock: { now: () => now },
      log: silentLogger,
      freshness: { read: (index, at) => void seen.push([index, at]) },
    };
    await readIndexLive('index-3', reads, new AbortController().signal);
    await readIndexLive('index-3', reads, new AbortController().signal);
    expect(seen).to.deep.equal([[{ index: INDEX, beat: 7, ageMs: 30, versions: { a: 'v1' }, behind: {} }, 100_000]]);
  });
});
