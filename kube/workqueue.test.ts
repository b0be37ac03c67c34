import { expect } from 'chai';
import fc from 'fast-check';
import sinon from 'sinon';
import { FAKED } from './testing/fake-time.js';
import { systemClock } from './clock.js';
import { WorkQueue } from './workqueue.js';

function makeQueue(): WorkQueue {
  return new WorkQueue({ clock: systemClock, random: () => 1 });
}

/** What `get` gives now, without waiting; undefined while it waits. */
async function takeNow(queue: WorkQueue): Promise<string | undefined> {
  return queue.length === 0 ? undefined : queue.get();
}

describe('WorkQueue', () => {
  let time: sinon.SinonFakeTimers;
  beforeEach(() => {
    time = sinon.useFakeTimers({ toFake: FAKED });
  });
  afterEach(() => time.restore());

  it('returns keys in the order in which they were added, and each only once', async () => {
    const queue = makeQueue();
    for (const key of ['a', 'b', 'a', 'c', 'b']) queue.add(key);
    expect([await takeNow(queue), await takeNow(queue), await takeNow(queue)]).to.deep.equal(['a', 'b', 'c']);
    expect(queue.length).to.equal(0);
  });

  it('wakes a waiting worker', async () => {
    const queue = makeQueue();
    const waiting = queue.get();
    queue.add('a');
    expect(await waiting).to.equal('a');
  });

  it('returns a key that was added during its processing only after its worker is done', async () => {
    const queue = makeQueue();
    queue.add('a');
    await queue.get();
    queue.add('a');
    queue.add('a');
    expect(queue.length).to.equal(0);
    queue.done('a');
    expect(queue.length).to.equal(1);
    await queue.get();
    queue.done('a');
    expect(queue.length).to.equal(0);
  });

  it('uses the earliest of several delays of a key', () => {
    const queue = makeQueue();
    queue.addAfter('a', 300);
    queue.addAfter('a', 100);
    queue.addAfter('a', 200);
    time.tick(99);
    expect(queue.length).to.equal(0);
    time.tick(1);
    expect(queue.length).to.equal(1);
    expect(time.countTimers()).to.equal(0);
  });

  it('adds a key with a delay of zero at once', () => {
    const queue = makeQueue();
    queue.addAfter('a', 0);
    expect(queue.length).to.equal(1);
  });

  it('doubles the delay of a key with each failure up to a minute, and resets the failures of one key only', () => {
    const queue = makeQueue();
    const delays: number[] = [];
    for (let failure = 0; failure < 13; failure++) {
      const from = time.now;
      queue.addRateLimited('a');
      time.next();
      delays.push(time.now - from);
      // Taken, so that the next failure finds the queue empty.
      void queue.get();
      queue.done('a');
    }
    expect(delays).to.deep.equal([50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000]);
    queue.addRateLimited('b');
    queue.forget('a');
    expect([queue.retries('a'), queue.retries('b')]).to.deep.equal([0, 1]);
    queue.shutDown();
  });

  it('returns waiting keys after a shutdown, then undefined, and accepts no more keys', async () => {
    const queue = makeQueue();
    queue.add('a');
    queue.addAfter('b', 10);
    queue.shutDown();
    queue.add('c');
    queue.addAfter('d', 10);
    expect(time.countTimers()).to.equal(0);
    expect([await queue.get(), await queue.get()]).to.deep.equal(['a', undefined]);
  });

  it('releases waiting workers at a shutdown', async () => {
    const queue = makeQueue();
    const workers = Promise.all([queue.get(), queue.get()]);
    queue.shutDown();
    expect(await workers).to.deep.equal([undefined, undefined]);
  });

  it('is drained when no key is waiting or being processed', async () => {
    const queue = makeQueue();
    const order: string[] = [];
    queue.add('a');
    await queue.get();
    queue.add('a');
    const drained = queue.drain().then(() => order.push('drained'));
    queue.done('a');
    await queue.get();
    order.push('done again');
    queue.done('a');
    await drained;
    expect(order).to.deep.equal(['done again', 'drained']);
  });

  it('takes the keys of namespaces in turns, however many one of them has', async () => {
    const queue = makeQueue();
    for (const key of ['many/1', 'many/2', 'many/3', 'few/1', 'other/1', 'other/2']) queue.add(key);
    const taken: (string | undefined)[] = [];
    while (queue.length > 0) taken.push(await queue.get());
    expect(taken).to.deep.equal(['many/1', 'few/1', 'other/1', 'many/2', 'other/2', 'many/3']);
  });

  it('gives retries of a namespace no more than its turn', async () => {
    const queue = makeQueue();
    const failed = Array.from({ length: 100 }, (_, index) => `many/${index}`);
    for (const key of failed) queue.add(key);
    for (const key of failed) {
      await queue.get();
      queue.addRateLimited(key);
      queue.done(key);
    }
    time.tick(1_000);
    queue.add('few/1');
    expect([await queue.get(), await queue.get()]).to.deep.equal(['many/0', 'few/1']);
  });

  it('takes turns by another group of keys if told to', async () => {
    const queue = new WorkQueue({ clock: systemClock, random: () => 1, groupOf: (key) => key.charAt(0) });
    for (const key of ['a1', 'a2', 'b1']) queue.add(key);
    expect([await queue.get(), await queue.get(), await queue.get()]).to.deep.equal(['a1', 'b1', 'a2']);
  });

  it('keeps the order of many thousands of keys', async () => {
    const queue = makeQueue();
    const keys = Array.from({ length: 20_000 }, (_, index) => String(index));
    const taken: (string | undefined)[] = [];
    for (const key of keys) {
      queue.add(key);
      if (Number(key) % 3 === 0) taken.push(await queue.get());
    }
    while (queue.length > 0) taken.push(await queue.get());
    expect(taken).to.deep.equal(keys);
  });
});

describe('WorkQueue, in random sequences of calls', () => {
  const key = fc.constantFrom('x/a', 'x/b', 'y/a', 'c');
  const step = fc.oneof(
    fc.record({ do: fc.constant('add' as const), key }),
    fc.record({ do: fc.constant('addAfter' as const), key, ms: fc.integer({ min: 0, max: 100 }) }),
    fc.record({ do: fc.constant('take' as const) }),
    fc.record({ do: fc.constant('done' as const), key }),
    fc.record({ do: fc.constant('fail' as const), key }),
    fc.record({ do: fc.constant('tick' as const), ms: fc.integer({ min: 1, max: 200 }) }),
  );

  it('delays a key by at most one key of each other namespace and those before it in its own', async () => {
    const keys = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.nat(50)), { minLength: 1, maxLength: 80 });
    await fc.assert(
      fc.asyncProperty(keys, async (added) => {
        const queue = makeQueue();
        const waiting = [...new Set(added.map(([namespace, n]) => `${namespace}/${n}`))];
        for (const each of waiting) queue.add(each);
        const namespaces = new Set(waiting.map((each) => each.charAt(0))).size;
        for (let position = 0; queue.length > 0; position++) {
          const taken = (await queue.get()) ?? '';
          const before = waiting.filter((each) => each.startsWith(taken.charAt(0))).indexOf(taken);
          expect(position).to.be.lessThan((before + 1) * namespaces);
        }
      }),
    );
  });

  it('gives no key to two workers at once, and loses no key', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const time = sinon.useFakeTimers({ toFake: FAKED });
        try {
          await checkRun(steps, time);
        } finally {
          time.restore();
        }
      }),
    );
  });

  type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

  async function checkRun(steps: Step[], time: sinon.SinonFakeTimers): Promise<void> {
    const queue = makeQueue();
    const working = new Set<string>();
    /** Added, also with a delay, and not handed out since. */
    const owed = new Set<string>();
    const take = async () => {
      const taken = await takeNow(queue);
      if (taken === undefined) return;
      expect(working.has(taken), `${taken} is with two workers`).to.equal(false);
      working.add(taken);
      owed.delete(taken);
    };
    const finish = (name: string) => {
      if (working.delete(name)) queue.done(name);
    };
    for (const each of steps) {
      switch (each.do) {
        case 'add':
          queue.add(each.key);
          owed.add(each.key);
          break;
        case 'addAfter':
          queue.addAfter(each.key, each.ms);
          owed.add(each.key);
          break;
        case 'take':
          await take();
          break;
        case 'done':
          finish(each.key);
          break;
        case 'fail':
          if (!working.has(each.key)) break;
          queue.addRateLimited(each.key);
          owed.add(each.key);
          finish(each.key);
          break;
        case 'tick':
          time.tick(each.ms);
          break;
      }
    }
    for (const name of working) queue.done(name);
    working.clear();
    time.tick(100_000);
    // A key may be owed twice (queued and delayed), so all rounds count.
    for (let round = 0; round < 10; round++) {
      await take();
      for (const name of working) finish(name);
    }
    expect([...owed], 'keys that were lost').to.deep.equal([]);
    expect(queue.length).to.equal(0);
  }
});
