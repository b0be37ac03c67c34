import { expect } from 'chai';
import { FaultServer, type Reply, status } from '../../test/https/fault-server.js';
import { QUIET, WatchHarness, bookmark, event, isWatch, list, testObject } from '../testing/watch-harness.js';
import { ManualClock } from '../../test/manual-clock.js';
import { type Clock, systemClock } from '../clock.js';

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
    expect(server.seen[0]?.query.toString()).to.equal('limit=100');
    expect(server.seen[1]?.query.get('allowWatchBookmarks')).to.equal('true');
    expect(Number(server.seen[1]?.query.get('timeoutSeconds'))).to.be.within(300, 600);
    expect(bench.informer.lastProgress).to.be.within(systemClock.now() - 5000, systemClock.now());
  });

  it('treats a list as old as its request, because it may show the state of that time', async () => {
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

  it('has seen all changes until the start of a watch that ended cleanly, although no event or bookmark came', async () => {
    const clock = new ManualClock(1_000_000);
    bench = new WatchHarness(server, 10_000, clock);
    let watches = 0;
    bench.startWith(
      (request) => {
        if (!isWatch(request)) {
          clock.advanceTo(1_005_000);
          return list(10);
        }
        if (++watches > 1) return QUIET;
        clock.advanceTo(1_010_000);
        return { lines: [], then: 'end' };
      },
      { clock, watchSeconds: 5 },
    );
    await bench.untilRequests(3);
    expect(server.seen.slice(1).map(({ query }) => query.get('timeoutSeconds'))).to.deep.equal(['5', '5']);
    expect(bench.informer.lastProgress).to.equal(1_005_000);
  });

  it('has seen nothing of the time of a watch that broke', async () => {
    const clock = new ManualClock(1_000_000);
    bench = new WatchHarness(server, 10_000, clock);
    bench.startWith(
      (request) => {
        clock.advanceTo(clock.now() + 5_000);
        return isWatch(request) ? { lines: [], then: 'reset' } : list(10);
      },
      { clock },
    );
    await bench.until(() => bench.ends.length > 0);
    expect(bench.informer.lastProgress).to.equal(1_000_000);
  });

  it('restarts a watch at once after a clean end, from the last known version', async () => {
    const watches = [{ lines: [event('ADDED', testObject('a', 11))], then: 'end' as const }];
    bench.start([list(10)], [...watches, { lines: [bookmark(15)], then: 'end' }, QUIET]);
    await bench.untilRequests(4);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 11', 'watch 15']);
    expect(bench.sleeps).to.deep.equal([]);
  });

  it('lists again and again, and watches nothing, if that is set', async () => {
    bench.start([list(10, testObject('a', 5)), list(20, testObject('b', 15))], [], { relistMs: [60_000] });
    await bench.until(() => bench.changes.length === 3);
    expect(bench.changes).to.deep.equal(['added a@5', 'removed a@5', 'added b@15']);
    expect(new Set(bench.requestSummaries())).to.deep.equal(new Set(['list']));
    expect(bench.sleeps[0], 'with random() === 1').to.equal(90_000);
  });

  it('lists for the second time after another pause than later', async () => {
    const lists = [list(10, testObject('a', 5)), list(20, testObject('b', 15)), list(30, testObject('c', 25))];
    bench.start(lists, [], { relistMs: [2_000, 60_000] });
    await bench.until(() => bench.changes.length === 5);
    expect(bench.sleeps.slice(0, 2), 'with random() === 1').to.deep.equal([3_000, 90_000]);
  });

  it('backs off when watches end at once without an event', async () => {
    bench.start([list(10)], [{ lines: [], then: 'end' }]);
    await bench.untilRequests(5);
    expect(bench.sleeps.slice(0, 3)).to.deep.equal([150, 195, 254]);
  });

  it('lists again with backoff after an ERROR event with 410', async () => {
    const gone = { lines: [event('ERROR', status(410, 'Expired'))] };
    bench.start([list(10, testObject('a', 5)), list(20, testObject('a', 5)), list(30)], [gone, gone, QUIET]);
    await bench.untilRequests(6);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'list', 'watch 20', 'list', 'watch 30']);
    expect(bench.sleeps).to.deep.equal([200, 400]);
    expect(bench.ends).to.deep.equal(['410', '410']);
    expect(bench.changes).to.deep.equal(['added a@5', 'removed a@5']);
  });

  it('lists again with backoff after HTTP 410', async () => {
    bench.start([list(10), list(20)], [{ status: 410, body: status(410, 'Expired') }, QUIET]);
    await bench.untilRequests(4);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'list', 'watch 20']);
    expect(bench.sleeps).to.deep.equal([200]);
  });

  it('waits for Retry-After after 429, or backs off after 503, and keeps its version', async () => {
    const busy: Reply = { status: 429, headers: { 'retry-after': '50' }, body: status(429, 'TooManyRequests') };
    bench.start([list(10)], [busy, { status: 503, body: status(503, 'ServiceUnavailable') }, QUIET]);
    await bench.untilRequests(4);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 10', 'watch 10']);
    expect(bench.sleeps).to.deep.equal([50_000, 1600]);
  });

  it('retries failed lists forever, and is synced by the first that succeeds', async () => {
    const broken: Reply = { status: 500, body: status(500, 'InternalError') };
    bench.start([...Array.from({ length: 9 }, () => broken), list(10, testObject('a', 5))], [QUIET]);
    await bench.informer.synced();
    expect(bench.sleeps).to.deep.equal([800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 30_000]);
    expect(bench.changes).to.deep.equal(['added a@5']);
  });

  it('soon continues from its version after a reset in the middle of the stream', async () => {
    bench.start([list(10)], [{ lines: [event('ADDED', testObject('a', 11))], then: 'reset' }, QUIET]);
    await bench.untilRequests(3);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 11']);
    expect([bench.sleeps, bench.ends]).to.deep.equal([[150], ['broken']]);
  });

  it('continues from its version after garbage in the stream, and reports it', async () => {
    bench.start([list(10)], [{ lines: [event('ADDED', testObject('a', 11)), '{"type": oops\n'] }, QUIET]);
    await bench.untilRequests(3);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 11']);
    expect([bench.sleeps, bench.ends]).to.deep.equal([[800], ['malformed']]);
  });

  it('continues from its version after JSON that is not a watch event', async () => {
    bench.start([list(10)], [{ lines: [{ hello: 'world' }] }, { lines: [event('ADDED', { metadata: {} })] }, QUIET]);
    await bench.untilRequests(4);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 10', 'watch 10']);
    expect(bench.ends).to.deep.equal(['malformed', 'malformed']);
  });

  it('counts an ERROR event other than 410, and continues from its version', async () => {
    bench.start([list(10)], [{ lines: [event('ERROR', status(500, 'InternalError'))] }, QUIET]);
    await bench.untilRequests(3);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 10']);
    expect([bench.sleeps, bench.ends]).to.deep.equal([[800], ['500']]);
  });

  it('lists again when its version is too new for the server, as after a restore of etcd', async () => {
    const details = { retryAfterSeconds: 1, causes: [{ reason: 'ResourceVersionTooLarge' }] };
    bench.start([list(10), list(4)], [{ status: 504, body: { ...status(504, 'Timeout'), details } }, QUIET]);
    await bench.untilRequests(4);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'list', 'watch 4']);
  });

  it('detects a server that does not answer the watch', async () => {
    bench = new WatchHarness(server, 500);
    bench.start([list(10)], [{ silent: true }, QUIET]);
    await bench.untilRequests(3);
    expect(bench.ends).to.deep.equal(['deadline']);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 10']);
  });

  it('detects a half-open watch because it receives no data', async () => {
    bench.start([list(10)], [{ lines: [bookmark(11)] }, QUIET], { idleMs: 100 });
    await bench.untilRequests(3);
    expect(bench.ends).to.deep.equal(['idle']);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 11']);
  });

  it('restarts a watch within 150 s if two successive bookmarks are missing', async () => {
    const clock = new ManualClock(1_000_000);
    for (const random of [0, 0.5, 0.999]) {
      await bench.close();
      bench = new WatchHarness(server, 10_000, clock);
      const lines = [event('ADDED', testObject('a', 11))];
      bench.start([list(10)], [{ lines }, QUIET], { clock, random: () => random });
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

  it('restarts a watch whose bytes never complete an event', async () => {
    bench.start([list(10)], [{ lines: [bookmark(11)] }, QUIET], { idleMs: 200 });
    const drip = setInterval(() => server.push('\n'), 20);
    await bench.until(() => bench.ends.length > 0);
    clearInterval(drip);
    expect(bench.ends).to.deep.equal(['idle']);
  });

  it('restarts idle watches without growing delays, because the idle limit separates them', async () => {
    bench.start([list(10)], [QUIET], { idleMs: 20 });
    await bench.untilRequests(5);
    expect(bench.sleeps.slice(0, 3)).to.deep.equal([150, 150, 150]);
  });

  it('backs off if watches fail without a response', async () => {
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

  it('restarts a stale watch from its version when its caller asks for it, but not a new watch', async () => {
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

  it('refreshes credentials that are rejected during a watch, and keeps its version', async () => {
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

  it('misses no change after the server was unavailable', async () => {
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

  it('resets its failures when a watch has worked', async () => {
    const reset: Reply = { reset: true };
    bench.start([list(10)], [reset, reset, reset, { lines: [bookmark(11)], then: 'reset' }, QUIET]);
    await server.until(() => bench.requestSummaries().at(-1) === 'watch 11');
    expect(bench.sleeps.at(-1)).to.equal(150);
  });
});
