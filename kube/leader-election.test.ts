import { expect } from 'chai';
import sinon from 'sinon';
import { FAKED } from './testing/fake-time.js';
import { MemoryTransport } from './testing/memory-transport.js';
import { Client } from './client.js';
import { systemClock } from './clock.js';
import { TransportError } from './errors.js';
import { LEASES, LeaderElection, type Lease } from './leader-election.js';
import { silentLogger } from './log.js';

class Candidate {
  readonly api: MemoryTransport;
  readonly election: LeaderElection;
  readonly running: Promise<void>;
  started = 0;
  stopped = 0;
  /** When the signal of its term aborted. */
  abortedAt: number | undefined;
  /** How much later it is by the clock than by the timers, as when a paused process continues. */
  pausedMs = 0;

  constructor(api: MemoryTransport, identity: string, onStopped: () => Promise<void> = () => Promise.resolve()) {
    this.api = api;
    this.election = new LeaderElection({
      client: new Client(api),
      namespace: 'holdfast',
      name: 'controller',
      identity,
      clock: { ...systemClock, now: () => systemClock.now() + this.pausedMs },
      random: () => 1,
      log: silentLogger,
    });
    this.running = this.election.run({
      onStarted: (signal) => {
        this.started++;
        signal.addEventListener('abort', () => {
          this.abortedAt = Date.now();
        });
      },
      onStopped: async () => {
        await onStopped();
        this.stopped++;
      },
    });
  }
}

const uncut = () => undefined;

describe('LeaderElection', () => {
  let time: sinon.SinonFakeTimers;
  let api: MemoryTransport;
  beforeEach(() => {
    time = sinon.useFakeTimers({ now: Date.UTC(2030, 0, 1), toFake: FAKED });
    api = new MemoryTransport();
  });
  afterEach(() => {
    const left = time.countTimers();
    time.restore();
    expect(left, 'timers that were left').to.equal(0);
  });

  function lease(): Promise<Lease> {
    return new Client(api).get(LEASES, { namespace: 'holdfast', name: 'controller' });
  }

  async function stop(...candidates: Candidate[]): Promise<void> {
    const stopped = Promise.all(candidates.flatMap((each) => [each.election.stop(), each.running]));
    await time.tickAsync(60_000);
    await stopped;
  }

  it('makes the first candidate the leader, and never two at once', async () => {
    const first = new Candidate(api, 'a');
    const second = new Candidate(api, 'b');
    await time.tickAsync(120_000);
    expect([first.election.isLeader, second.election.isLeader]).to.deep.equal([true, false]);
    expect([first.started, second.started]).to.deep.equal([1, 0]);
    await stop(second, first);
  });

  it('ends a term that is over by the clock before its timer runs, and releases the lease', async () => {
    const only = new Candidate(api, 'a');
    await time.tickAsync(0);
    only.pausedMs = 9_999;
    expect([only.election.confirm(), only.abortedAt]).to.deep.equal([true, undefined]);
    only.pausedMs = 10_000;
    expect([only.election.confirm(), only.abortedAt]).to.deep.equal([false, Date.now()]);
    expect(only.election.isLeader).to.equal(false);
    await time.tickAsync(0);
    expect(only.stopped).to.equal(1);
    expect((await lease()).spec?.holderIdentity).to.equal('');
    await stop(only);
  });

  it('lets work write after a stop until the term is over by the clock', async () => {
    const only = new Candidate(api, 'a', () => systemClock.sleep(3_000));
    expect(only.election.leaseLost.aborted, 'before the term').to.equal(true);
    await time.tickAsync(0);
    const stopped = only.election.stop();
    only.pausedMs = 9_999;
    expect([only.election.isLeader, only.election.leaseLost.aborted]).to.deep.equal([false, false]);
    only.pausedMs = 10_000;
    expect(only.election.leaseLost.aborted).to.equal(true);
    await time.tickAsync(3_000);
    await stopped;
  });

  it('lets nobody write any more when it releases the Lease', async () => {
    const only = new Candidate(api, 'a');
    await time.tickAsync(0);
    const wasLost: boolean[] = [];
    api.before = () => void wasLost.push(only.election.leaseLost.aborted);
    await stop(only);
    expect(wasLost).to.deep.equal([true]);
  });

  it('does not extend a term by a renewal whose answer was read after a pause', async () => {
    const only = new Candidate(api, 'a');
    await time.tickAsync(0);
    const acquired = Date.now();
    api.before = () => {
      only.pausedMs += 60_000;
    };
    await time.tickAsync(9_999);
    expect(only.abortedAt).to.equal(undefined);
    await time.tickAsync(1);
    expect(only.abortedAt).to.equal(acquired + 10_000);
    api.before = uncut;
    await stop(only);
  });

  it('writes a Lease as client-go does', async () => {
    const first = new Candidate(api, 'a');
    await time.tickAsync(0);
    const acquired = await lease();
    expect(acquired.spec).to.deep.equal({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2030-01-01T00:00:00.000000Z',
      renewTime: '2030-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    });
    await time.tickAsync(2_000);
    const renewed = await lease();
    expect(renewed.spec).to.deep.equal({ ...acquired.spec, renewTime: '2030-01-01T00:00:02.000000Z' });
    await stop(first);
  });

  it('renews without reading', async () => {
    const first = new Candidate(api, 'a');
    await time.tickAsync(0);
    api.requests.length = 0;
    await time.tickAsync(10_000);
    expect(api.requests.map((request) => request.method)).to.deep.equal(['PUT', 'PUT', 'PUT', 'PUT', 'PUT']);
    await stop(first);
  });

  it('releases the lease when it stops, so that a successor acquires it at its next retry', async () => {
    const first = new Candidate(api, 'a');
    await time.tickAsync(0);
    const second = new Candidate(api, 'b');
    await time.tickAsync(5_000);
    const stopped = first.election.stop();
    await time.tickAsync(2_000);
    await stopped;
    expect([first.election.isLeader, first.stopped]).to.deep.equal([false, 1]);
    expect(second.election.isLeader).to.equal(true);
    expect((await lease()).spec).to.include({ holderIdentity: 'b', leaseTransitions: 1 });
    await stop(second);
  });

  it('releases the lease only after the work has ended', async () => {
    const first = new Candidate(api, 'a', () => systemClock.sleep(3_000));
    await time.tickAsync(0);
    const stopped = first.election.stop();
    await time.tickAsync(2_999);
    expect(first.abortedAt).to.equal(Date.now() - 2_999);
    expect((await lease()).spec?.holderIdentity).to.equal('a');
    await time.tickAsync(1);
    await stopped;
    expect((await lease()).spec?.holderIdentity).to.equal('');
  });

  it('stops leading without a renewal before another candidate starts', async () => {
    const line = new MemoryTransport(api.tracker);
    const first = new Candidate(line, 'a');
    await time.tickAsync(0);
    const second = new Candidate(api, 'b');
    await time.tickAsync(4_000);
    line.before = () => {
      throw new TransportError('unsent', 'cut');
    };
    const cut = Date.now();
    while (!second.election.isLeader) await time.tickAsync(100);
    expect(first.abortedAt).to.be.within(cut + 8_000, cut + 10_000);
    expect(Date.now()).to.be.within(cut + 15_000, cut + 17_100);
    expect(first.stopped).to.equal(1);
    await first.running;
    await stop(second);
  });

  it('stops leading in time if the renewal hangs', async () => {
    const hanging = new AbortController();
    const first = new Candidate(api, 'a');
    await time.tickAsync(0);
    api.before = () => systemClock.sleep(30_000, hanging.signal);
    const cut = Date.now();
    await time.tickAsync(10_000);
    expect(first.abortedAt).to.equal(cut + 10_000);
    expect(first.election.isLeader).to.equal(false);
    hanging.abort();
    await time.tickAsync(1_000);
    await first.running;
    expect((await lease()).spec?.holderIdentity, 'a late renewal is undone').to.equal('');
  });

  it('does not lead after a write that took longer than the renew deadline, but after the next renewal', async () => {
    api.before = (request) => (request.method === 'POST' ? systemClock.sleep(10_500) : undefined);
    const first = new Candidate(api, 'a');
    await time.tickAsync(11_000);
    expect((await lease()).spec?.holderIdentity).to.equal('a');
    expect(first.started).to.equal(0);
    await time.tickAsync(2_000);
    expect(first.election.isLeader).to.equal(true);
    await stop(first);
  });

  it('measures expiry with its own clock, even if the clock of the holder is wrong', async () => {
    const holder = { holderIdentity: 'gone', leaseDurationSeconds: 15, renewTime: '2001-01-01T00:00:00.000000Z' };
    await new Client(api).create(LEASES, { metadata: { namespace: 'holdfast', name: 'controller' }, spec: holder });
    const begun = Date.now();
    const first = new Candidate(api, 'a');
    while (!first.election.isLeader) await time.tickAsync(100);
    expect(Date.now() - begun).to.be.within(15_000, 17_100);
    await stop(first);
  });

  it('stops leading when another candidate has taken its lease', async () => {
    const first = new Candidate(api, 'a');
    await time.tickAsync(0);
    const taken = await lease();
    await new Client(api).replace(LEASES, { ...taken, spec: { ...taken.spec, holderIdentity: 'thief' } });
    await time.tickAsync(4_000);
    await first.running;
    expect([first.election.isLeader, first.stopped]).to.deep.equal([false, 1]);
    expect((await lease()).spec?.holderIdentity).to.equal('thief');
  });

  it('keeps leading during errors that are shorter than its deadline', async () => {
    const first = new Candidate(api, 'a');
    await time.tickAsync(0);
    api.before = () => {
      throw new TransportError('broken', 'reset');
    };
    await time.tickAsync(7_000);
    api.before = uncut;
    await time.tickAsync(60_000);
    expect([first.started, first.stopped]).to.deep.equal([1, 0]);
    await stop(first);
  });

  it('keeps leading if the answer to one renewal is lost, although the next renewal is a conflict', async () => {
    const first = new Candidate(api, 'a');
    await time.tickAsync(0);
    api.before = async ({ deadlineMs = 0 }) => {
      api.before = uncut;
      await systemClock.sleep(deadlineMs);
      return { error: new TransportError('deadline', 'no complete response'), applied: true };
    };
    await time.tickAsync(60_000);
    expect([first.started, first.stopped]).to.deep.equal([1, 0]);
    await stop(first);
  });

  it('can be stopped while it waits', async () => {
    const first = new Candidate(api, 'a');
    await time.tickAsync(0);
    const second = new Candidate(api, 'b');
    await time.tickAsync(5_000);
    await stop(second);
    expect([second.started, second.stopped]).to.deep.equal([0, 0]);
    await stop(first);
  });

  it('rejects periods with which two candidates could lead at once', () => {
    const given = { namespace: 'n', name: 'n', identity: 'a', clock: systemClock, random: () => 1, log: silentLogger };
    expect(() => new LeaderElection({ ...given, client: new Client(api), renewDeadlineMs: 20_000 })).to.throw(
      RangeError,
      'renewDeadlineMs (20000) < leaseDurationMs (15000)',
    );
  });
});
