import { expect } from 'chai';
import { FaultServer, type Reply, status } from '../test/fault-server.js';
import { QUIET, WatchHarness, bookmark, event, isWatch, list, testObject } from './testing/watch-harness.js';
import { ManualClock } from '../test/manual-clock.js';
import { type Clock, systemClock } from './clock.js';

describe('Reflector', () => {
  let server: FaultServer;
  let bench: WatchHarness;
  before(async () => {
    server = await FaultServer.start(() => ({}));
  });
  after(() => server.stop());
  beforeEach(() => {
    bench = new WatchHarness(server);
  });
  afterEach(() => bench.close());

  it('lists, then watches from there with bookmarks and a random timeout', async () => {
    bench.start([list(10, testObject('a', 5))], [QUIET]);
    expect(bench.informer.hasSynced).to.equal(false);
    await bench.informer.synced();
    expect(bench.informer.hasSynced).to.equal(true);
    expect(bench.informer.cache.get('n/a')?.size).to.equal(5);
    await bench.untilRequests(2);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10']);
    expect(server.seen[0]?.query.toString()).to.equal('limit=500');
    expect(server.seen[1]?.query.get('allowWatchBookmarks')).to.equal('true');
    expect(Number(server.seen[1]?.query.get('timeoutSeconds'))).to.be.within(300, 600);
    expect(bench.informer.lastProgress).to.be.within(systemClock.now() - 5000, systemClock.now());
  });

  it('takes a list for as old as its request, because it may show the state of that moment', async () => {
    const clock = new ManualClock(1_000_000);
    bench = new WatchHarness(server, 10_000, clock);
    bench.startWith(
      (request) => {
        if (isWatch(request)) return QUIET;
        clock.advanceTo(clock.now() + 5_000);
        return list(10);
      },
      { clock },
    );
    await bench.untilRequests(2);
    expect(bench.informer.lastProgress).to.equal(1_000_000);
  });

  it('watches again at once after a clean end, from the last version that it saw', async () => {
    const watches = [{ lines: [event('ADDED', testObject('a', 11))], then: 'end' as const }];
    bench.start([list(10)], [...watches, { lines: [bookmark(15)], then: 'end' }, QUIET]);
    await bench.untilRequests(4);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 11', 'watch 15']);
    expect(bench.sleeps).to.deep.equal([]);
  });

  it('slows down when watches end at once without an event', async () => {
    bench.start([list(10)], [{ lines: [], then: 'end' }]);
    await bench.untilRequests(5);
    expect(bench.sleeps.slice(0, 3)).to.deep.equal([150, 195, 254]);
  });

  it('lists again with back-off after an ERROR event with 410', async () => {
    const gone = { lines: [event('ERROR', status(410, 'Expired'))] };
    bench.start([list(10, testObject('a', 5)), list(20, testObject('a', 5)), list(30)], [gone, gone, QUIET]);
    await bench.untilRequests(6);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'list', 'watch 20', 'list', 'watch 30']);
    expect(bench.sleeps).to.deep.equal([200, 400]);
    expect(bench.ends).to.deep.equal(['410', '410']);
    expect(bench.changes).to.deep.equal(['added a@5', 'removed a@5']);
  });

  it('lists again with back-off after HTTP 410', async () => {
    bench.start([list(10), list(20)], [{ status: 410, body: status(410, 'Expired') }, QUIET]);
    await bench.untilRequests(4);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'list', 'watch 20']);
    expect(bench.sleeps).to.deep.equal([200]);
  });

  it('waits as long as Retry-After says after 429, or with back-off after 503, and keeps its place', async () => {
    const busy: Reply = { status: 429, headers: { 'retry-after': '700' }, body: status(429, 'TooManyRequests') };
    bench.start([list(10)], [busy, { status: 503, body: status(503, 'ServiceUnavailable') }, QUIET]);
    await bench.untilRequests(4);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 10', 'watch 10']);
    expect(bench.sleeps).to.deep.equal([700_000, 1600]);
  });

  it('never gives up on lists that fail, and is synced with the first that does not', async () => {
    const broken: Reply = { status: 500, body: status(500, 'InternalError') };
    bench.start([...Array.from({ length: 9 }, () => broken), list(10, testObject('a', 5))], [QUIET]);
    await bench.informer.synced();
    expect(bench.sleeps).to.deep.equal([800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 30_000]);
    expect(bench.changes).to.deep.equal(['added a@5']);
  });

  it('goes on from its place, and soon, after a reset in the middle of the stream', async () => {
    bench.start([list(10)], [{ lines: [event('ADDED', testObject('a', 11))], then: 'reset' }, QUIET]);
    await bench.untilRequests(3);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 11']);
    expect([bench.sleeps, bench.ends]).to.deep.equal([[150], ['broken']]);
  });

  it('goes on from its place after garbage in the stream, and does not swallow it', async () => {
    bench.start([list(10)], [{ lines: [event('ADDED', testObject('a', 11)), '{"type": oops\n'] }, QUIET]);
    await bench.untilRequests(3);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 11']);
    expect([bench.sleeps, bench.ends]).to.deep.equal([[800], ['malformed']]);
  });

  it('goes on from its place after JSON that is no watch event', async () => {
    bench.start([list(10)], [{ lines: [{ hello: 'world' }] }, { lines: [event('ADDED', { metadata: {} })] }, QUIET]);
    await bench.untilRequests(4);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 10', 'watch 10']);
    expect(bench.ends).to.deep.equal(['malformed', 'malformed']);
  });

  it('counts an ERROR event other than 410, and goes on from its place', async () => {
    bench.start([list(10)], [{ lines: [event('ERROR', status(500, 'InternalError'))] }, QUIET]);
    await bench.untilRequests(3);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 10']);
    expect([bench.sleeps, bench.ends]).to.deep.equal([[800], ['500']]);
  });

  it('lists again when its version has not happened yet, as after a restore of etcd', async () => {
    const details = { retryAfterSeconds: 1, causes: [{ reason: 'ResourceVersionTooLarge' }] };
    bench.start([list(10), list(4)], [{ status: 504, body: { ...status(504, 'Timeout'), details } }, QUIET]);
    await bench.untilRequests(4);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'list', 'watch 4']);
  });

  it('notices a server that does not answer the watch at all', async () => {
    bench = new WatchHarness(server, 500);
    bench.start([list(10)], [{ silent: true }, QUIET]);
    await bench.untilRequests(3);
    expect(bench.ends).to.deep.equal(['deadline']);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 10']);
  });

  it('notices a half-open watch by its silence', async () => {
    bench.start([list(10)], [{ lines: [bookmark(11)] }, QUIET], { idleMs: 100 });
    await bench.untilRequests(3);
    expect(bench.ends).to.deep.equal(['idle']);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 11']);
  });

  it('restarts a watch of which two bookmarks in a row are missing, within 150 s', async () => {
    const clock = new ManualClock(1_000_000);
    for (const random of [0, 0.5, 0.999]) {
      await bench.close();
      bench = new WatchHarness(server, 10_000, clock);
      bench.start([list(10)], [{ lines: [event('ADDED', testObject('a', 11))] }, QUIET], {
        clock,
        random: () => random,
      });
      await bench.until(() => bench.changes.length === 1);
      clock.advanceTo(clock.now() + 120_000);
      expect(bench.requestSummaries(), 'one bookmark may be late').to.deep.equal(['list', 'watch 10']);
      clock.advanceTo(clock.now() + 30_000);
      await bench.until(() => bench.ends.length === 1);
      expect(bench.ends).to.deep.equal(['idle']);
      clock.advanceTo(clock.now() + 1_000);
      await bench.untilRequests(3);
      expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 11']);
    }
  });

  it('restarts a watch that only sends bytes which never make an event', async () => {
    bench.start([list(10)], [{ lines: [bookmark(11)] }, QUIET], { idleMs: 200 });
    const drip = setInterval(() => server.push('\n'), 20);
    await bench.until(() => bench.ends.length > 0);
    clearInterval(drip);
    expect(bench.ends).to.deep.equal(['idle']);
  });

  it('restarts silent watches without growing delays, because the idle limit spaces them', async () => {
    bench.start([list(10)], [QUIET], { idleMs: 20 });
    await bench.untilRequests(5);
    expect(bench.sleeps.slice(0, 3)).to.deep.equal([150, 150, 150]);
  });

  it('backs off from a server that does not answer watches for longer than a short watch takes', async () => {
    const waited: number[] = [];
    let now = 0;
    // each look at it is a minute later
    const clock: Clock = {
      ...systemClock,
      now: () => (now += 60_000),
      sleep: (ms) => systemClock.sleep(0).then(() => void waited.push(Math.round(ms))),
    };
    bench.start([list(10)], [{ reset: true }], { clock });
    await bench.until(() => waited.length >= 3);
    expect(waited.slice(0, 3)).to.deep.equal([150, 195, 254]);
  });

  it('restarts the watch from its place when its caller says that it is behind, but not one that has just begun', async () => {
    const clock = new ManualClock(1_000_000);
    bench = new WatchHarness(server, 10_000, clock);
    bench.start([list(10)], [{ lines: [event('ADDED', testObject('a', 11))] }, QUIET], { clock });
    await bench.until(() => bench.changes.length === 1);
    bench.informer.restartWatch();
    clock.advanceTo(clock.now() + 1_000);
    bench.informer.restartWatch();
    await bench.untilRequests(3);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 11']);
    expect(bench.ends).to.deep.equal(['restart']);
  });

  it('refreshes credentials that are refused in the middle, without losing its place', async () => {
    bench.startWith((request) => {
      const revoked = server.seen.length > 2 && request.headers.authorization === 'Bearer old';
      if (revoked) return { status: 401, body: status(401, 'Unauthorized') };
      if (!isWatch(request)) return list(10);
      return server.seen.length === 2 ? { lines: [bookmark(11)], then: 'end' } : QUIET;
    });
    await bench.untilRequests(4);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 11', 'watch 11']);
    expect(server.seen[3]?.headers.authorization).to.equal('Bearer new');
    expect(bench.sleeps).to.deep.equal([]);
  });

  it('finds a server that was away for a while, and misses nothing', async () => {
    bench.start([list(10)], [QUIET, { lines: [event('ADDED', testObject('a', 11))] }]);
    await bench.untilRequests(2);
    await server.stop();
    await bench.until(() => bench.sleeps.length >= 5);
    await server.restart();
    await bench.untilRequests(3);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 10']);
    // About a third of the outage so far, so that its end is noticed early.
    expect(bench.sleeps.slice(0, 5)).to.deep.equal([150, 195, 254, 330, 428]);
  });

  it('forgets earlier bench.failures once a watch has worked', async () => {
    const reset: Reply = { reset: true };
    bench.start([list(10)], [reset, reset, reset, { lines: [bookmark(11)], then: 'reset' }, QUIET]);
    await server.until(() => bench.requestSummaries().at(-1) === 'watch 11');
    expect(bench.sleeps.at(-1)).to.equal(150);
  });
});
