import { expect } from 'chai';
import { FaultServer, type Reply, type SeenRequest, status } from '../../test/https/fault-server.js';
import { Client } from '../client.js';
import { HistoryGuard } from './history-guard.js';
import { QUIET, WatchHarness, bookmark, event, isWatch, list, testObject } from '../testing/watch-harness.js';
import { Transport } from '../transport/transport.js';

describe('a watch after the API server was away', () => {
  let server: FaultServer;
  let bench: WatchHarness;
  let client: Client;
  let reports: string[];
  before(async () => {
    server = await FaultServer.start(() => ({}));
  });
  after(() => server.stop());
  beforeEach(() => {
    bench = new WatchHarness(server);
    client = new Client(new Transport(server.credentials(['old'])));
    reports = [];
  });
  afterEach(async () => {
    await bench.close();
    await client.transport.close();
  });

  const isCheck = ({ query }: SeenRequest) => query.get('limit') === '1';

  /** Lists, checks and watches are answered in turn, the last of each for ever. */
  function start(replies: { lists: Reply[]; checks: Reply[]; watches: Reply[] }, idleMs?: number): void {
    const history = new HistoryGuard(client);
    history.onWentBack((error) => reports.push(error.message));
    const next = (from: Reply[]) => (from.length > 1 ? from.shift() : from[0]) ?? QUIET;
    const { lists, checks, watches } = replies;
    bench.startWith((request) => next(isWatch(request) ? watches : isCheck(request) ? checks : lists), {
      history,
      ...(idleMs !== undefined && { idleMs }),
    });
  }

  const requests = () =>
    server.seen.map((seen) =>
      isCheck(seen) ? 'check' : isWatch(seen) ? `watch ${seen.query.get('resourceVersion') ?? ''}` : 'list',
    );

  const broken: Reply = { lines: [event('ADDED', testObject('a', 11))], then: 'reset' };

  it('continues if the data is as new as before', async () => {
    start({ lists: [list(10)], checks: [list(11)], watches: [broken, QUIET] });
    await bench.untilRequests(4);
    expect(requests()).to.deep.equal(['list', 'watch 10', 'check', 'watch 11']);
    expect(reports).to.deep.equal([]);
  });

  it('ends with a report if the data is older, and leaves the cache as it is', async () => {
    start({ lists: [list(10)], checks: [list(7)], watches: [broken, QUIET] });
    await bench.until(() => reports.length > 0);
    await bench.close();
    expect(requests()).to.deep.equal(['list', 'watch 10', 'check']);
    expect(reports).to.have.length(1);
    expect(reports[0]).to.include('things at resourceVersion 7, seen 11').and.to.include('restore of etcd');
    expect(bench.changes).to.deep.equal(['added a@11']);
  });

  it('ends with a report if a silent watch hides that the data is older', async () => {
    start({ lists: [list(10)], checks: [list(9)], watches: [{ lines: [bookmark(12)] }] }, 50);
    await bench.until(() => reports.length > 0);
    expect(bench.ends).to.deep.equal(['idle']);
    expect(reports[0]).to.include('at resourceVersion 9, seen 12');
  });

  it('ends with a report if a new list is older than the last event', async () => {
    const expired = { lines: [event('ADDED', testObject('a', 11)), event('ERROR', status(410, 'Expired'))] };
    start({ lists: [list(10), list(8)], checks: [], watches: [expired, QUIET] });
    await bench.until(() => reports.length > 0);
    expect(requests()).to.deep.equal(['list', 'watch 10', 'list']);
    expect(bench.changes, 'the older list is not cached').to.deep.equal(['added a@11']);
  });

  it('ends with a report if a new list has an older version of an object, as after a restore of etcd that raised the versions', async () => {
    const expired = { lines: [event('ADDED', testObject('a', 11)), event('ERROR', status(410, 'Expired'))] };
    const restored = list(1_000_012, testObject('b', 9), testObject('a', 8));
    start({ lists: [list(10, testObject('b', 9)), restored], checks: [], watches: [expired, QUIET] });
    await bench.until(() => reports.length > 0);
    await bench.close();
    expect(requests()).to.deep.equal(['list', 'watch 10', 'list']);
    expect(reports[0]).to.include('things at resourceVersion 8, seen 11');
    expect(bench.changes, 'the older list is not cached').to.deep.equal(['added b@9', 'added a@11']);
  });

  it('repeats a check that fails, and then continues', async () => {
    const checks = [{ status: 503, body: status(503, 'ServiceUnavailable') }, list(11)];
    start({ lists: [list(10)], checks, watches: [broken, QUIET] });
    await bench.untilRequests(5);
    expect(requests()).to.deep.equal(['list', 'watch 10', 'check', 'check', 'watch 11']);
    expect(reports).to.deep.equal([]);
  });

  it('compares versions as numbers of any size, and nothing else', async () => {
    const history = new HistoryGuard(client);
    history.onWentBack(({ message }) => reports.push(message));
    const part = { resource: { group: '', version: 'v1', plural: 'things', kind: 'Thing', namespaced: true } };
    for (const [seen, found] of [
      ['', '5'],
      ['9', '10'],
      ['10', '10'],
      ['x9', '5'],
      ['10', 'x'],
      ['10', ''],
    ] as const) {
      history.compare(part, seen, found);
    }
    expect(() => history.compare(part, '18446744073709551615', '18446744073709551614')).to.throw('older');
    expect(reports).to.have.length(1);
    await client.transport.close();
  });
});
