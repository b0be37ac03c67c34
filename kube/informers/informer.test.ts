import { expect } from 'chai';
import { FaultServer, type Reply, status } from '../../test/https/fault-server.js';
import { QUIET, WatchHarness, bookmark, describeChange, event, list, testObject } from '../testing/watch-harness.js';
import { systemClock } from '../clock.js';

describe('Informer', () => {
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

  it('follows additions, changes and deletions', async () => {
    const lines = [
      event('ADDED', testObject('b', 11)),
      event('MODIFIED', testObject('b', 12)),
      event('DELETED', testObject('a', 13)),
      bookmark(20),
    ];
    bench.start([list(10, testObject('a', 5))], [{ lines, then: 'end' }, QUIET]);
    await bench.untilRequests(3);
    expect(bench.changes).to.deep.equal(['added a@5', 'added b@11', 'changed b@12', 'removed a@5']);
    expect(bench.informer.cache.list().map((each) => each.metadata.name)).to.deep.equal(['b']);
    expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10', 'watch 20']);
  });

  it('reports what a new list has changed, and nothing about unchanged objects', async () => {
    const before = [
      testObject('stays', 1),
      testObject('goes', 2),
      testObject('changes', 3),
      testObject('is-another', 4, 'old'),
    ];
    const after = [
      testObject('stays', 1),
      testObject('changes', 12),
      testObject('is-another', 13, 'new'),
      testObject('comes', 14),
    ];
    bench.start([list(10, ...before), list(20, ...after)], [{ status: 410 }, QUIET]);
    await bench.untilRequests(4);
    expect(bench.changes.slice(4)).to.deep.equal([
      'removed goes@2',
      'changed changes@12',
      'removed is-another@4',
      'added is-another@13',
      'added comes@14',
    ]);
  });

  it('lets other work run while it compares a list with its cache', async () => {
    const objects = Array.from({ length: 100 }, (_, n) => testObject(`n${n}`, n));
    let now = 0;
    let turns = 0;
    const turn = () => {
      turns++;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    const seen: number[] = [];
    // each look at the clock takes a millisecond
    const clock = { ...systemClock, now: () => now++ };
    bench.start([list(200, ...objects), list(300, ...objects)], [{ status: 410 }, QUIET], { clock });
    bench.informer.onList(() => {
      const began = turns;
      return () => seen.push(turns - began);
    });
    await bench.untilRequests(4);
    clearImmediate(next);
    // 100 objects are looked up, 100 keys of the cache, and 100 objects are compared
    expect(seen[1]).to.be.within(12, 20);
  });

  it('calls list handlers before and after a list changes the cache, with the versions between which changes may be missing', async () => {
    bench.start([list(10, testObject('a', 5)), list(20, testObject('b', 12))], [{ status: 410 }, QUIET]);
    bench.informer.onList(({ from, to }) => {
      bench.changes.push(`list ${from}-${to}`);
      return () => bench.changes.push(`listed ${bench.informer.cache.keys().join()}`);
    });
    await bench.untilRequests(4);
    expect(bench.changes).to.deep.equal([
      ...['list -10', 'added a@5', 'listed n/a'],
      ...['list 10-20', 'removed a@5', 'added b@12', 'listed n/b'],
    ]);
  });

  it('continues when a handler throws, and counts the failure', async () => {
    bench.start([list(10, testObject('a', 5), testObject('b', 6))], [QUIET]);
    const told: string[] = [];
    bench.informer.onChange((change) => {
      told.push(change.object.metadata.name);
      throw new Error('handler is broken');
    });
    await bench.informer.synced();
    expect(told).to.deep.equal(['a', 'b']);
    expect(bench.failures).to.equal(2);
    expect(bench.changes).to.deep.equal(['added a@5', 'added b@6']);
  });

  it('keeps the old state of an object that cannot be read, and follows the others', async () => {
    const lines = [
      event('MODIFIED', { ...testObject('a', 11), size: 'big' }),
      event('ADDED', testObject('b', 12)),
      bookmark(13),
    ];
    bench.start([list(10, testObject('a', 5))], [{ lines, then: 'end' }, QUIET], {
      transform: (object) => {
        if (typeof object.size !== 'number') throw new TypeError('size is not a number');
        return object;
      },
    });
    await bench.untilRequests(3);
    expect(bench.changes).to.deep.equal(['added a@5', 'added b@12']);
    expect(bench.informer.cache.get('n/a')?.size).to.equal(5);
    expect(bench.failures).to.equal(1);
  });

  it('caches and indexes the transformed objects', async () => {
    bench.start([list(10, testObject('a', 5), testObject('b', 6))], [QUIET], {
      transform: ({ metadata: { name }, size }) => ({ metadata: { name, namespace: 'n' }, size }),
      indexes: { size: (object) => [String(object.size)] },
    });
    await bench.informer.synced();
    const { cache } = bench.informer;
    expect(cache.byIndex('size', '6')).to.deep.equal([{ metadata: { name: 'b', namespace: 'n' }, size: 6 }]);
  });

  it('reports cached objects to a handler that is added later', async () => {
    bench.start([list(10, testObject('a', 5))], [QUIET]);
    await bench.informer.synced();
    const told: string[] = [];
    bench.informer.onChange((change) => told.push(describeChange(change)));
    expect(told).to.deep.equal(['added a@5']);
  });

  it('treats an optional kind that is not served as empty, and lists it when it is served', async () => {
    const absent: Reply = { status: 404, body: status(404, 'NotFound') };
    bench.start([absent, absent, list(10, testObject('a', 5))], [QUIET], { optional: true });
    await bench.informer.synced();
    expect(bench.informer.cache.size).to.equal(0);
    await bench.untilRequests(4);
    expect(bench.sleeps).to.deep.equal([1000, 2000]);
    expect(bench.changes).to.deep.equal(['added a@5']);
  });

  it('empties the cache when an optional kind is no longer served', async () => {
    const absent: Reply = { status: 404, body: status(404, 'NotFound') };
    bench.start([list(10, testObject('a', 5)), absent, list(20)], [absent, QUIET], { optional: true });
    await bench.untilRequests(4);
    expect(bench.changes).to.deep.equal(['added a@5', 'removed a@5']);
  });

  it('reports that an optional kind is not served, also within a handler of a removed object', async () => {
    const absent: Reply = { status: 404, body: status(404, 'NotFound') };
    bench.start([list(10, testObject('a', 5)), absent, list(20)], [absent, QUIET], { optional: true });
    const { informer } = bench;
    const told: string[] = [];
    informer.onChange(({ type }) => told.push(`${type}, ${informer.isServed ? 'served' : 'not served'}`));
    informer.onServed(() => told.push(`${informer.cache.size}, ${informer.isServed ? 'served' : 'not served'}`));
    await bench.untilRequests(5);
    expect(told).to.deep.equal(['added, served', 'removed, not served', '0, not served', '0, served']);
  });

  it('is not synced while a required kind is not served', async () => {
    bench.start([{ status: 404, body: status(404, 'NotFound') }], []);
    await bench.untilRequests(3);
    expect(bench.informer.hasSynced).to.equal(false);
    expect(bench.sleeps.slice(0, 2)).to.deep.equal([800, 1600]);
  });

  describe('when it is stopped', () => {
    it('closes its watch and opens no other', async () => {
      bench.start([list(10)], [QUIET]);
      await bench.untilRequests(2);
      await bench.informer.stop();
      await server.until(() => server.openAnswers === 0);
      expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10']);
      bench.informer.start();
      await bench.informer.stop();
      expect(bench.requestSummaries()).to.have.length(2);
    });

    it('neither fills the cache nor watches if it was listing', async () => {
      bench.start([{ ...list(10, testObject('a', 5)), delayMs: 50 }], [QUIET]);
      await bench.untilRequests(1);
      await bench.informer.stop();
      expect([bench.informer.cache.size, server.seen.length]).to.deep.equal([0, 1]);
    });

    it('ends a backoff at once', async () => {
      bench.start([{ status: 500 }], [], { clock: systemClock });
      await bench.untilRequests(1);
      const begun = Date.now();
      await bench.informer.stop();
      expect(Date.now() - begun).to.be.below(500);
    });

    it('rejects callers that wait for its first list', async () => {
      bench.start([{ silent: true }], []);
      const waiting = bench.informer.synced().catch((error: unknown) => (error as Error).message);
      await bench.informer.stop();
      expect(await waiting).to.equal('the informer of things was stopped before its first list');
    });

    it('has had only one watch if it was started twice', async () => {
      bench.start([list(10)], [QUIET]);
      bench.informer.start();
      await bench.untilRequests(2);
      bench.informer.start();
      await bench.informer.stop();
      expect(bench.requestSummaries()).to.deep.equal(['list', 'watch 10']);
    });
  });
});
