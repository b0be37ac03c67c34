import { expect } from 'chai';
import { ManualClock } from '../test/manual-clock.js';
import { systemClock } from './clock.js';
import { WorkQueue } from './workqueue.js';

describe('many keys that are added to a WorkQueue together', () => {
  /** Keys that take a millisecond each. */
  function* slowKeys(clock: ManualClock, keys: number): Generator<string> {
    for (let key = 0; key < keys; key++) {
      clock.advanceTo(clock.now() + 1);
      yield `vms/${key}`;
    }
  }

  it('let other work run every 20 ms, and none is lost', async () => {
    const clock = new ManualClock(0);
    const queue = new WorkQueue({ clock, random: () => 1 });
    const lengths: number[] = [];
    const look = () => {
      lengths.push(queue.length);
      next = setImmediate(look);
    };
    let next = setImmediate(look);
    await queue.addAll(slowKeys(clock, 100));
    clearImmediate(next);
    expect(lengths.length).to.be.within(4, 5);
    expect(queue.length).to.equal(100);
  });

  it('are added once, even if a key is finished before it comes again', async () => {
    const queue = new WorkQueue({ clock: systemClock, random: () => 1 });
    const workedOn: (string | undefined)[] = [];
    function* keys(): Generator<string> {
      yield 'a';
      void queue.get().then((key) => {
        workedOn.push(key);
        queue.done(key ?? '');
      });
      yield 'a';
    }
    await queue.addAll(keys());
    expect([workedOn, queue.length]).to.deep.equal([['a'], 0]);
  });

  it('are not all added if the queue is shut down', async () => {
    const clock = new ManualClock(0);
    const queue = new WorkQueue({ clock, random: () => 1 });
    const adding = queue.addAll(slowKeys(clock, 100));
    queue.shutDown();
    await adding;
    expect([queue.length, clock.now()]).to.deep.equal([20, 21]);
  });
});
