import { expect } from 'chai';
import sinon from 'sinon';
import { FAKED } from './testing/fake-time.js';
import { ManualClock } from '../test/manual-clock.js';
import { TurnCounter } from '../test/turn-counter.js';
import { systemClock } from './clock.js';
import { StatusError, TransportError } from './errors.js';
import { silentLogger } from './log.js';
import { ControllerLoop, type Sync, type SyncResult } from './controller-loop.js';
import { WorkQueue } from './workqueue.js';

function statusError(status: number, retryAfterMs?: number): StatusError {
  return new StatusError({ request: 'PUT /x', status, reason: 'Reason', message: 'message', retryAfterMs });
}

describe('ControllerLoop', () => {
  let time: sinon.SinonFakeTimers;
  let queue: WorkQueue;
  beforeEach(() => {
    time = sinon.useFakeTimers({ toFake: FAKED });
    queue = new WorkQueue({ clock: systemClock, random: () => 1 });
  });
  afterEach(() => time.restore());

  function makeLoop(sync: Sync, workers = 1): ControllerLoop {
    return new ControllerLoop({ name: 'test', queue, workers, sync, log: silentLogger, clock: systemClock });
  }

  /** When the key is synced for the second time, if its first sync ends as given. */
  async function secondSyncAfter(first: () => Promise<unknown>): Promise<{ afterMs: number; retries: number }> {
    const times: number[] = [];
    const loop = makeLoop(async () => {
      times.push(time.now);
      if (times.length === 1) return (await first()) as undefined;
      return undefined;
    });
    queue.add('a');
    loop.start();
    await time.tickAsync(0);
    const retries = queue.retries('a');
    await time.tickAsync(600_000);
    await loop.stop();
    return { afterMs: (times[1] ?? Number.POSITIVE_INFINITY) - (times[0] ?? 0), retries };
  }

  const cases: { name: string; given: () => Promise<unknown>; expect: { afterMs: number; retries: number } }[] = [
    {
      name: 'does not look again at a key that is in order',
      given: () => Promise.resolve(),
      expect: { afterMs: Number.POSITIVE_INFINITY, retries: 0 },
    },
    {
      name: 'looks again when the sync says so, without counting a failure',
      given: () => Promise.resolve({ requeueAfterMs: 3000 }),
      expect: { afterMs: 3000, retries: 0 },
    },
    {
      name: 'tries an unfinished key again with back-off',
      given: () => Promise.resolve({ retry: 'VMI is not there yet' }),
      expect: { afterMs: 50, retries: 1 },
    },
    {
      name: 'tries again with back-off after an error without an answer',
      given: () => Promise.reject(new TransportError('broken', 'reset')),
      expect: { afterMs: 50, retries: 1 },
    },
    {
      name: 'looks again soon after a conflict',
      given: () => Promise.reject(statusError(409)),
      expect: { afterMs: 50, retries: 1 },
    },
    {
      name: 'waits long after a refusal that only somebody else can cure',
      given: () => Promise.reject(statusError(422)),
      expect: { afterMs: 60_000, retries: 0 },
    },
    {
      name: 'waits as long as the server asks',
      given: () => Promise.reject(statusError(503, 7000)),
      expect: { afterMs: 7000, retries: 0 },
    },
    {
      name: 'backs off if the server asks for no delay',
      given: () => Promise.reject(statusError(503, 0)),
      expect: { afterMs: 50, retries: 1 },
    },
  ];
  for (const { name, given, expect: expected } of cases) {
    it(name, async () => {
      expect(await secondSyncAfter(given)).to.deep.equal(expected);
    });
  }

  it('continues with other keys while one fails, and resets its failures when it succeeds', async () => {
    const synced: string[] = [];
    const loop = makeLoop((key): Promise<void> => {
      synced.push(key);
      const failures = synced.filter((each) => each === 'bad').length;
      return key === 'bad' && failures < 3 ? Promise.reject(new Error('broken object')) : Promise.resolve();
    });
    for (const key of ['bad', 'good', 'better']) queue.add(key);
    loop.start();
    await time.tickAsync(10_000);
    await loop.stop();
    expect(synced).to.deep.equal(['bad', 'good', 'better', 'bad', 'bad']);
    expect(queue.retries('bad')).to.equal(0);
  });

  it('keeps the failures of a key if a sync in between came too early', async () => {
    const failed: number[] = [];
    const loop = makeLoop((): Promise<SyncResult> => {
      const earlyByMs = (failed.at(-1) ?? -200) + 200 - time.now;
      if (earlyByMs > 0) return Promise.resolve({ earlyByMs });
      failed.push(time.now);
      return Promise.reject(new TransportError('broken', 'reset'));
    });
    time.setSystemTime(0);
    queue.add('a');
    loop.start();
    await time.tickAsync(2_000);
    await loop.stop();
    expect(failed).to.deep.equal([0, 200, 400, 600, 1000, 1800]);
  });

  it('syncs as many keys at once as it has workers', async () => {
    let running = 0;
    let most = 0;
    const loop = makeLoop(async () => {
      most = Math.max(most, ++running);
      await systemClock.sleep(10);
      running--;
    }, 3);
    for (const key of ['a', 'b', 'c', 'd', 'e']) queue.add(key);
    loop.start();
    await time.tickAsync(100);
    await loop.stop();
    expect(most).to.equal(3);
  });

  it('finishes running syncs when it stops, and drops waiting keys', async () => {
    const finished: string[] = [];
    const loop = makeLoop(async (key) => {
      await systemClock.sleep(1000);
      finished.push(key);
    });
    queue.add('a');
    queue.add('b');
    loop.start();
    await time.tickAsync(10);
    const stopped = loop.stop();
    await time.tickAsync(1000);
    await stopped;
    expect(finished).to.deep.equal(['a']);
    expect(time.countTimers()).to.equal(0);
  });

  it('aborts a sync that exceeds the grace period of a stop', async () => {
    let aborted = false;
    const loop = makeLoop(async (_key, signal) => {
      await systemClock.sleep(3_600_000, signal);
      aborted = signal.aborted;
    });
    queue.add('a');
    loop.start();
    await time.tickAsync(0);
    const stopped = loop.stop();
    await time.tickAsync(9_999);
    expect(aborted).to.equal(false);
    await time.tickAsync(1);
    await stopped;
    expect(aborted).to.equal(true);
  });

  it('lets many requests listen to its abort signal without a warning of Node', async () => {
    const warnings: Error[] = [];
    const hear = (warning: Error) => warnings.push(warning);
    process.on('warning', hear);
    const loop = makeLoop((_key, signal) => {
      for (let n = 0; n < 20; n++) signal.addEventListener('abort', () => undefined);
      return Promise.resolve();
    });
    queue.add('a');
    loop.start();
    await time.tickAsync(0);
    await loop.stop();
    await new Promise((resolve) => process.nextTick(resolve)); // warnings are emitted in the next tick
    process.off('warning', hear);
    expect(warnings.map(({ name }) => name)).to.deep.equal([]);
  });

  it('gives the next free worker to a namespace that has none, however many keys another one has', async () => {
    const running: string[] = [];
    const ends: (() => void)[] = [];
    const sync = (key: string) => {
      running.push(key);
      return new Promise<void>((resolve) => ends.push(resolve));
    };
    const loop = makeLoop(sync, 2);
    for (let key = 0; key < 100; key++) queue.add(`many/${key}`);
    loop.start();
    await time.tickAsync(0);
    queue.add('few/1');
    ends[1]?.();
    await time.tickAsync(0);
    expect(running).to.deep.equal(['many/0', 'many/1', 'many/2']);
    ends[0]?.();
    await time.tickAsync(0);
    expect(running.at(-1)).to.equal('few/1');
    const stopped = loop.stop();
    for (const end of ends) end();
    await stopped;
  });

  it('lets timers and I/O run while it has many keys whose syncs await nothing else', async () => {
    const counter = new TurnCounter();
    let synced = 0;
    const keys = 1_000;
    const finished = new Promise<void>((resolve) => {
      // each takes a millisecond
      const clock = new ManualClock(0);
      const sync = () => {
        clock.advanceTo(clock.now() + 1);
        if (++synced === keys) resolve(loop.stop());
        return Promise.resolve();
      };
      const loop = new ControllerLoop({ name: 'test', queue, workers: 4, sync, log: silentLogger, clock });
      for (let key = 0; key < keys; key++) queue.add(String(key));
      loop.start();
    });
    await finished;
    counter.stop();
    expect(counter.turns).to.be.within(keys / 25, keys / 5);
  });

  it('cannot be started twice', async () => {
    const loop = makeLoop(() => Promise.resolve());
    loop.start();
    expect(() => loop.start()).to.throw('started before');
    await loop.stop();
  });
});
