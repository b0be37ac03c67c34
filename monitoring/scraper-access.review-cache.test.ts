import { expect } from 'chai';
import { ManualClock } from '../test/manual-clock.js';
import { ReviewCache } from './scraper-access.js';

describe('the cache of reviews', () => {
  let clock: ManualClock;
  let cache: ReviewCache<string>;
  let asked: string[];

  beforeEach(() => {
    clock = new ManualClock(1_000);
    cache = new ReviewCache({ clock, acceptedMs: 100, rejectedMs: 10, maxProtected: 2, maxOthers: 3 });
    asked = [];
  });

  async function resolve(key: string): Promise<string | undefined> {
    const answer = await cache.resolve(key, () => {
      asked.push(key);
      return Promise.resolve(key.startsWith('bad') ? undefined : key);
    });
    if (answer?.startsWith('good')) cache.protect(key);
    return answer;
  }

  it('keeps protected answers while any number of others arrives', async () => {
    await resolve('good');
    for (let count = 0; count < 20; count++) {
      expect(await resolve(`bad${count}`)).to.equal(undefined);
      expect(await resolve(`other${count}`)).to.equal(`other${count}`);
    }
    asked = [];
    expect(await resolve('good')).to.equal('good');
    expect(asked).to.deep.equal([]);
  });

  it('drops the oldest unprotected answers beyond the limit', async () => {
    for (const key of ['bad1', 'bad2', 'bad3', 'bad4']) await resolve(key);
    asked = [];
    for (const key of ['bad2', 'bad3', 'bad4', 'bad1']) await resolve(key);
    expect(asked).to.deep.equal(['bad1']);
  });

  it('drops the least recently used protected answers beyond the limit', async () => {
    for (const key of ['good2', 'good1', 'good2', 'good3']) await resolve(key);
    asked = [];
    for (const key of ['good2', 'good3', 'good1']) await resolve(key);
    expect(asked).to.deep.equal(['good1']);
  });

  it('counts the time of an answer from when it arrived', async () => {
    await cache.resolve('good', () => {
      clock.advanceTo(1_050);
      return Promise.resolve('good');
    });
    clock.advanceTo(1_149);
    await resolve('good');
    expect(asked).to.deep.equal([]);
    clock.advanceTo(1_150);
    await resolve('good');
    expect(asked).to.deep.equal(['good']);
  });

  it('does not remember an error', async () => {
    let failure = '';
    const fail = () => Promise.reject(new Error('away'));
    await cache.resolve('good', fail).catch((error: unknown) => (failure = String(error)));
    expect(failure).to.include('away');
    expect(await resolve('good')).to.equal('good');
  });
});
