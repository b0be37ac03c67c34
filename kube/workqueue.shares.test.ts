import { expect } from 'chai';
import fc from 'fast-check';
import { systemClock } from './clock.js';
import { WorkQueue } from './workqueue.js';
import { ManualClock } from '../test/manual-clock.js';

function makeQueue(workers: number): WorkQueue {
  return new WorkQueue({ clock: systemClock, random: () => 1, workers });
}

const of = (keys: Iterable<string>, namespace: string) => [...keys].filter((key) => key.startsWith(namespace));

/** Four workers of a queue, as the test moves them. */
class Workers {
  readonly queue = makeQueue(4);
  readonly waiting = new Set<string>();
  readonly working: string[] = [];
  idle = 0;

  async step(step: string): Promise<void> {
    if (step === 'done') this.#finish(this.working.shift());
    else if (step === 'get') this.#take();
    else this.#add(step);
    await Promise.resolve();
    await Promise.resolve();
  }

  #finish(key: string | undefined): void {
    if (key !== undefined) this.queue.done(key);
  }

  #take(): void {
    if (this.idle + this.working.length === 4) return;
    this.idle++;
    void this.queue.get().then((key = '') => {
      this.idle--;
      this.waiting.delete(key);
      this.working.push(key);
    });
  }

  #add(key: string): void {
    this.queue.add(key);
    this.waiting.add(key);
  }
}

describe('The workers of a WorkQueue', () => {
  it('are half left to other namespaces while the keys of one are processed', async () => {
    const queue = makeQueue(4);
    for (let key = 0; key < 10; key++) queue.add(`many/${key}`);
    expect([await queue.get(), await queue.get()]).to.deep.equal(['many/0', 'many/1']);
    const [third, fourth] = [queue.get(), queue.get()];
    queue.add('few/0');
    expect(await third).to.equal('few/0');
    queue.done('many/1');
    expect(await fourth).to.equal('many/2');
  });

  it('may all have cluster-scoped keys, which belong to no namespace', async () => {
    const queue = makeQueue(2);
    for (const key of ['a', 'b']) queue.add(key);
    expect([await queue.get(), await queue.get()]).to.deep.equal(['a', 'b']);
  });

  it('take the keys that wait for a worker of their namespace after a shutdown, too', async () => {
    const queue = makeQueue(2);
    for (const key of ['many/0', 'many/1']) queue.add(key);
    await queue.get();
    const idle = queue.get();
    const drained = queue.drain();
    expect(await idle).to.equal(undefined);
    queue.done('many/0');
    expect(await queue.get()).to.equal('many/1');
    queue.done('many/1');
    await drained;
  });

  it('wait only while each namespace with waiting keys has its share of them', async () => {
    const keys = fc.constantFrom('x/a', 'x/b', 'x/c', 'x/d', 'y/a', 'y/b', 'y/c');
    const steps = fc.array(fc.oneof(keys, fc.constantFrom('get', 'done')), { maxLength: 80 });
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const workers = new Workers();
        for (const step of taken) {
          await workers.step(step);
          for (const namespace of ['x', 'y']) {
            const busy = of(workers.working, namespace).length;
            expect(busy).to.be.at.most(2);
            const ready = of(workers.waiting, namespace).filter((key) => !workers.working.includes(key));
            if (workers.idle > 0 && ready.length > 0) expect(busy).to.equal(2);
          }
        }
        for (let round = 0; round < 40; round++) await workers.step(round % 2 === 0 ? 'done' : 'get');
        expect(workers.queue.length).to.equal(0);
      }),
    );
  });
});

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
