import { expect } from 'chai';
import fc from 'fast-check';
import { StatusError, TransportError } from '../kube/errors.js';
import { silentLogger } from '../kube/log.js';
import { ManualClock } from '../test/manual-clock.js';
import { ScraperAccess } from './scraper-access.js';
import { ReviewApi } from './testing/review-api.js';

const PROMETHEUS = '10.0.0.1';
const STRANGER = '10.0.0.2';

describe('access to metrics', () => {
  let api: ReviewApi;
  let clock: ManualClock;
  let access: ScraperAccess;

  function open(audiences: readonly string[] = []): void {
    access = new ScraperAccess({ client: api.client, audiences, clock, log: silentLogger });
  }

  beforeEach(() => {
    api = new ReviewApi();
    api.add('good', 'prometheus');
    api.readers.add('prometheus');
    api.add('other', 'tenant');
    clock = new ManualClock(1_000_000);
    open();
  });

  function advance(ms: number): void {
    clock.advanceTo(clock.now() + ms);
  }

  async function statusOf(token: string, address = PROMETHEUS): Promise<number> {
    return (await access.decide(`Bearer ${token}`, address)).status;
  }

  it('is granted to a user who may get /metrics', async () => {
    expect(await statusOf('good')).to.equal(200);
    expect(api.tokenReviews.map(({ spec }) => spec)).to.deep.equal([{ token: 'good' }]);
    expect(api.accessReviews.map(({ spec }) => spec)).to.deep.equal([
      {
        user: 'prometheus',
        uid: 'uid-of-prometheus',
        groups: ['system:authenticated'],
        extra: { a: ['b'] },
        nonResourceAttributes: { path: '/metrics', verb: 'get' },
      },
    ]);
  });

  it('is refused with 403 to a user without that right, and the message says what to do', async () => {
    expect(await access.decide('Bearer other', PROMETHEUS)).to.deep.equal({
      status: 403,
      message: 'user "tenant" may not get /metrics: bind it to the ClusterRole holdfast-metrics-reader',
    });
  });

  it('is refused with 401 to an unknown token', async () => {
    expect(await statusOf('unknown')).to.equal(401);
    expect(api.accessReviews).to.deep.equal([]);
  });

  const headers: [string, string | undefined][] = [
    ['no header', undefined],
    ['an empty header', ''],
    ['a password', 'Basic Z29vZDpnb29k'],
    ['no token', 'Bearer '],
    ['a token with spaces', 'Bearer good good'],
    ['a token with other characters', 'Bearer gööd'],
    ['a token over 8 KiB', `Bearer ${'a'.repeat(8 * 1024 + 1)}`],
  ];
  for (const [name, header] of headers) {
    it(`is refused with 401 for ${name}, without a request to the API server`, async () => {
      expect((await access.decide(header, PROMETHEUS)).status).to.equal(401);
      expect(api.tokenReviews).to.deep.equal([]);
    });
  }

  it('is refused for every token but the right one, whatever a client sends', async () => {
    const garbage = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.base64String(), fc.constant('good '));
    await fc.assert(
      fc.asyncProperty(garbage, fc.constantFrom('Bearer ', 'bearer ', 'Basic ', ''), async (text, scheme) => {
        open();
        const { status } = await access.decide(scheme + text, STRANGER);
        const isRight = /^bearer $/i.test(scheme) && text === 'good';
        expect(status).to.equal(isRight ? 200 : 401);
      }),
      { numRuns: 100 },
    );
  });

  it('is refused to an authenticated answer without a user name', async () => {
    api.add('nameless', '');
    expect(await statusOf('nameless')).to.equal(401);
  });

  it('asks the API server once a minute for a token, and every five minutes for a user', async () => {
    for (let second = 0; second < 600; second += 15) {
      expect(await statusOf('good')).to.equal(200);
      advance(15_000);
    }
    expect(api.tokenReviews).to.have.length(10);
    expect(api.accessReviews).to.have.length(2);
  });

  it('asks once for requests with one token that arrive together', async () => {
    const statuses = await Promise.all(Array.from({ length: 20 }, () => statusOf('good')));
    expect(new Set(statuses)).to.deep.equal(new Set([200]));
    expect([api.tokenReviews.length, api.accessReviews.length]).to.deep.equal([1, 1]);
  });

  it('notices a new right after 30 s', async () => {
    expect(await statusOf('other')).to.equal(403);
    api.readers.add('tenant');
    advance(29_000);
    expect(await statusOf('other')).to.equal(403);
    advance(1_000);
    expect(await statusOf('other')).to.equal(200);
  });

  it('notices a revoked token after one minute', async () => {
    expect(await statusOf('good')).to.equal(200);
    api.tokens.clear();
    advance(60_000);
    expect(await statusOf('good')).to.equal(401);
  });

  it('notices a removed right after five minutes', async () => {
    expect(await statusOf('good')).to.equal(200);
    api.readers.clear();
    advance(5 * 60_000);
    expect(await statusOf('good')).to.equal(403);
  });

  for (const error of [
    new TransportError('unsent', 'POST: ECONNREFUSED'),
    new StatusError({ request: 'POST', status: 403, reason: 'Forbidden', message: 'may not create tokenreviews' }),
    new StatusError({ request: 'POST', status: 500, reason: 'InternalError', message: 'etcd' }),
  ]) {
    it(`is refused with 503 if the API server fails: ${error.message}`, async () => {
      api.before = () => {
        throw error;
      };
      expect(await statusOf('good')).to.equal(503);
      expect(await statusOf('unknown')).to.equal(503);
    });
  }

  it('is refused with 503 after the cached answer has expired if the API server is away, and granted when it is back', async () => {
    expect(await statusOf('good')).to.equal(200);
    const away = () => {
      throw new TransportError('unsent', 'away');
    };
    api.before = away;
    advance(59_000);
    expect(await statusOf('good')).to.equal(200);
    advance(1_000);
    expect(await statusOf('good')).to.equal(503);
    api.before = () => undefined;
    expect(await statusOf('good')).to.equal(200);
  });

  it('is refused with 429 to a client that sends many invalid tokens, and still granted to others', async () => {
    const seen = [];
    for (let count = 0; count < 100; count++) seen.push(await statusOf(`wrong${count}`, STRANGER));
    expect(seen.filter((status) => status === 401)).to.have.length(10);
    expect(seen.filter((status) => status === 429)).to.have.length(90);
    expect(api.tokenReviews).to.have.length(10);
    expect(await statusOf('good')).to.equal(200);
    advance(1_000);
    expect(await statusOf('wrong', STRANGER)).to.equal(401);
  });

  it('causes at most ten requests a second to the API server, whatever the number of unknown clients', async () => {
    for (let count = 0; count < 200; count++) await statusOf(`wrong${count}`, `10.1.0.${count}`);
    expect(api.tokenReviews).to.have.length(40);
    advance(1_000);
    for (let count = 0; count < 200; count++) await statusOf(`again${count}`, `10.2.0.${count}`);
    expect(api.tokenReviews).to.have.length(50);
  });

  it('causes at most four requests of unknown clients at the same time, two for each', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    api.before = () => held;
    const ask = (address: string) => Array.from({ length: 5 }, (_, count) => statusOf(`${address}-${count}`, address));
    const answers = [...ask('10.0.0.2'), ...ask('10.0.0.3'), ...ask('10.0.0.4')];
    expect(api.tokenReviews).to.have.length(4);
    release();
    expect((await Promise.all(answers)).filter((status) => status === 401)).to.have.length(4);
    expect(await statusOf('good')).to.equal(200);
  });

  describe('for a scraper that was allowed before', () => {
    beforeEach(async () => {
      expect(await statusOf('good')).to.equal(200);
    });

    it('is granted while 15 addresses send as many invalid tokens as they may, also when its token is replaced', async () => {
      const statuses = [];
      for (let second = 1; second <= 6 * 60; second++) {
        advance(1_000);
        for (let count = 0; count < 15; count++) await statusOf(`bad-${second}-${count}`, `10.1.0.${count}`);
        if (second === 180) api.add('replaced', 'prometheus');
        if (second % 60 === 0) statuses.push(await statusOf(second < 180 ? 'good' : 'replaced'));
      }
      expect(statuses).to.deep.equal(Array<number>(6).fill(200));
    });

    it('is granted while other clients behind its address send invalid tokens', async () => {
      for (let minute = 0; minute < 5; minute++) {
        advance(60_000);
        for (let count = 0; count < 20; count++) await statusOf(`bad-${minute}-${count}`);
        expect(await statusOf('good')).to.equal(200);
      }
    });

    it('is granted while reviews of other clients take long', async () => {
      advance(60_000);
      let release: () => void = () => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      api.before = () => held;
      const others = [1, 2, 3, 4].map((count) => statusOf(`bad-${count}`, `10.1.0.${count}`));
      api.before = () => undefined;
      expect(await statusOf('good')).to.equal(200);
      release();
      expect(await Promise.all(others)).to.deep.equal([401, 401, 401, 401]);
    });

    it('does not ask again because a user without the right sends any number of valid tokens', async () => {
      for (let count = 0; count < 300; count++) {
        advance(100);
        api.add(`minted-${count}`, 'tenant');
        expect(await statusOf(`minted-${count}`, `10.1.0.${count % 10}`)).to.equal(403);
      }
      api.tokenReviews.length = 0;
      expect(await statusOf('good')).to.equal(200);
      expect(api.tokenReviews).to.deep.equal([]);
    });

    it('has no privilege ten minutes after its last scrape', async () => {
      const flood = async (name: string) => {
        for (let count = 0; count < 100; count++) await statusOf(`${name}-${count}`, `10.1.0.${count}`);
      };
      advance(10 * 60_000 - 1);
      await flood('first');
      expect(await statusOf('good')).to.equal(200);
      advance(10 * 60_000);
      await flood('second');
      expect(await statusOf('good')).to.equal(429);
    });
  });

  it('needs a token for one of the audiences if there are any', async () => {
    open(['metrics', 'holdfast']);
    api.add('ours', 'prometheus', ['holdfast']);
    api.add('others', 'prometheus', ['vault']);
    expect(await statusOf('ours')).to.equal(200);
    expect(await statusOf('others')).to.equal(401);
    // as an authenticator answers that does not know audiences
    expect(await statusOf('good')).to.equal(401);
    expect(api.tokenReviews[0]?.spec.audiences).to.deep.equal(['metrics', 'holdfast']);
  });
});
