import { expect } from 'chai';
import fc from 'fast-check';
import { systemClock } from './clock.js';
import { type Priority, WorkQueue } from './workqueue.js';

function makeQueue(workers?: number): WorkQueue {
  return new WorkQueue({ clock: systemClock, random: () => 1, ...(workers !== undefined && { workers }) });
}

/** Takes all keys. */
async function drained(queue: WorkQueue): Promise<string> {
  const taken: string[] = [];
  while (queue.length > 0) {
    const key = (await queue.get()) ?? '';
    taken.push(key);
    queue.done(key);
  }
  return taken.join(' ');
}

/** Keys are added in order; a key with a hyphen before it has low priority. */
const ORDERS: { title: string; added: string; taken: string }[] = [
  { title: 'come after those of normal priority', added: '-a -b c d', taken: 'c d a b' },
  { title: 'keep their order', added: '-a -b -c', taken: 'a b c' },
  { title: 'get every fourth turn', added: '-x -y a b c d e f g', taken: 'a b c x d e f y g' },
  { title: 'are raised by a change', added: '-a -b -c b', taken: 'b a c' },
  { title: 'are queued once when they are raised', added: '-a a -a a', taken: 'a' },
  { title: 'are not lowered', added: 'a b -a', taken: 'a b' },
  { title: 'take turns by namespace', added: '-x/1 -x/2 -x/3 -y/1', taken: 'x/1 y/1 x/2 x/3' },
  { title: 'do not take turns from those of another namespace', added: '-x/1 -x/2 y/1 y/2', taken: 'y/1 y/2 x/1 x/2' },
  { title: 'leave their namespace its place when one is raised', added: '-x/1 -x/2 -y/1 x/1', taken: 'x/1 x/2 y/1' },
];

describe('keys of low priority in a WorkQueue', () => {
  for (const { title, added, taken } of ORDERS) {
    it(title, async () => {
      const queue = makeQueue();
      for (const key of added.split(' ')) {
        if (key.startsWith('-')) queue.add(key.slice(1), 'low');
        else queue.add(key);
      }
      expect(await drained(queue)).to.equal(taken);
    });
  }

  it('are queued again with the highest priority with which they were added while they were processed', async () => {
    const queue = makeQueue();
    queue.add('a');
    await queue.get();
    for (const priority of ['low', 'normal', 'low'] as const) queue.add('a', priority);
    queue.add('b', 'low');
    queue.done('a');
    expect(await drained(queue)).to.equal('a b');
  });

  it('share the workers of their namespace with those of normal priority', async () => {
    const queue = makeQueue(4);
    queue.add('x/1');
    queue.add('x/2', 'low');
    queue.add('x/3', 'low');
    expect([await queue.get(), await queue.get()]).to.deep.equal(['x/1', 'x/2']);
    const third = queue.get();
    queue.add('y/1', 'low');
    expect(await third).to.equal('y/1');
    queue.done('x/1');
    expect(await queue.get()).to.equal('x/3');
  });

  it('are added to the end while workers take them', async () => {
    const queue = makeQueue();
    const taken: (string | undefined)[] = [];
    for (let key = 0; key < 5_000; key++) {
      queue.add(String(key), 'low');
      if (key % 3 === 0) taken.push(await queue.get());
    }
    while (queue.length > 0) taken.push(await queue.get());
    expect(taken).to.deep.equal(Array.from({ length: 5_000 }, (_, key) => String(key)));
  });
});

/** What a queue is: waiting keys in the order of their priority. */
class Model {
  readonly waiting: Record<Priority, string[]> = { normal: [], low: [] };
  readonly processing = new Set<string>();
  readonly again = new Map<string, Priority>();
  normalInARow = 0;

  add(key: string, priority: Priority): void {
    if (this.processing.has(key)) {
      if (this.again.get(key) !== 'normal') this.again.set(key, priority);
      return;
    }
    const { normal, low } = this.waiting;
    if (normal.includes(key) || (priority === 'low' && low.includes(key))) return;
    this.waiting.low = low.filter((each) => each !== key);
    this.waiting[priority].push(key);
  }

  take(): string | undefined {
    const { normal, low } = this.waiting;
    const isNormal = normal.length > 0 && (low.length === 0 || this.normalInARow < 3);
    this.normalInARow = isNormal && low.length > 0 ? this.normalInARow + 1 : 0;
    const key = (isNormal ? normal : low).shift();
    if (key !== undefined) this.processing.add(key);
    return key;
  }

  done(key: string): void {
    if (!this.processing.delete(key)) return;
    const again = this.again.get(key);
    this.again.delete(key);
    if (again !== undefined) this.add(key, again);
  }
}

describe('a WorkQueue with priorities, in random sequences of calls', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
  const step = fc.oneof(
    fc.record({ do: fc.constantFrom('normal' as const, 'low' as const), key }),
    fc.record({ do: fc.constant('take' as const), key }),
    fc.record({ do: fc.constant('done' as const), key }),
  );

  it('returns the keys of one namespace as a list for each priority would', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const queue = makeQueue();
        const model = new Model();
        for (const each of steps) {
          if (each.do === 'take') {
            const expected = model.take();
            if (expected !== undefined) expect(await queue.get()).to.equal(expected);
          } else if (each.do === 'done') {
            if (model.processing.has(each.key)) queue.done(each.key);
            model.done(each.key);
          } else {
            queue.add(each.key, each.do);
            model.add(each.key, each.do);
          }
          expect(queue.length).to.equal(model.waiting.normal.length + model.waiting.low.length);
        }
      }),
    );
  });

  it('gives each key of low priority a turn within four turns for each key before it, however many changes there are', async () => {
    const keys = fc.uniqueArray(fc.tuple(fc.constantFrom('x', 'y'), fc.nat(20)), { selector: String, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(keys, async (initial) => {
        const queue = makeQueue();
        const waiting = new Set(initial.map(([namespace, n]) => `${namespace}/${n}`));
        for (const each of waiting) queue.add(each, 'low');
        const turns = 4 * waiting.size;
        for (let turn = 0; turn < turns; turn++) {
          queue.add(`z/${turn}`);
          queue.add(`x/new-${turn}`);
          waiting.delete((await queue.get()) ?? '');
        }
        expect([...waiting]).to.deep.equal([]);
      }),
    );
  });
});
