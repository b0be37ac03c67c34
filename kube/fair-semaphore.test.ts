import { expect } from 'chai';
import fc from 'fast-check';
import { ManualClock } from '../test/manual-clock.js';
import { FairSemaphore, FairSemaphoreError, type FairSemaphoreLimits } from './fair-semaphore.js';

function create(limits: FairSemaphoreLimits): FairSemaphore {
  return new FairSemaphore(limits, (key) => `reads of ${key}`);
}

describe('FairSemaphore', () => {
  let running: string[];
  let ends: Map<string, () => void>;
  let semaphore: FairSemaphore;

  beforeEach(() => {
    running = [];
    ends = new Map();
    semaphore = create({ max: 10, maxPerKey: 10, maxQueuedPerKey: 100 });
  });

  function run(name: string, weight: number, key = ''): Promise<string> {
    return semaphore.run(key, weight, async () => {
      running.push(name);
      await new Promise<void>((resolve) => ends.set(name, resolve));
      running.splice(running.indexOf(name), 1);
      return name;
    });
  }

  /** Lets everything happen that does not wait for more. */
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

  it('starts work in order while the total weight fits', async () => {
    const all = [run('a', 6), run('b', 6), run('c', 1), run('d', 5)];
    await settle();
    expect(running).to.deep.equal(['a']);
    ends.get('a')?.();
    await settle();
    expect(running).to.deep.equal(['b', 'c']);
    ends.get('b')?.();
    await settle();
    expect(running).to.deep.equal(['c', 'd']);
    ends.get('c')?.();
    ends.get('d')?.();
    expect(await Promise.all(all)).to.deep.equal(['a', 'b', 'c', 'd']);
  });

  it('runs work that is heavier than the limit alone', async () => {
    const all = [run('a', 100), run('b', 1)];
    await settle();
    expect(running).to.deep.equal(['a']);
    ends.get('a')?.();
    await settle();
    ends.get('b')?.();
    await Promise.all(all);
  });

  it('releases the weight of work that fails', async () => {
    const failed: unknown = await semaphore
      .run('', 10, () => Promise.reject(new Error('broken')))
      .catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(Error);
    expect(await semaphore.run('', 10, () => Promise.resolve('next'))).to.equal('next');
  });

  it('leaves room for other keys while the work of one key runs', async () => {
    semaphore = create({ max: 10, maxPerKey: 5, maxQueuedPerKey: 100 });
    const all = [run('a1', 5, 'a'), run('a2', 5, 'a'), run('a3', 5, 'a'), run('b1', 1, 'b')];
    await settle();
    expect(running).to.deep.equal(['a1', 'b1']);
    for (const name of ['a1', 'a2', 'a3', 'b1']) {
      ends.get(name)?.();
      await settle();
    }
    await Promise.all(all);
  });

  it('lets keys take turns, and lighter work does not overtake the next work', async () => {
    semaphore = create({ max: 10, maxPerKey: 6, maxQueuedPerKey: 100 });
    const all = [run('a1', 6, 'a'), run('a2', 6, 'a'), run('b1', 6, 'b'), run('c1', 1, 'c')];
    await settle();
    expect(running).to.deep.equal(['a1']);
    ends.get('a1')?.();
    await settle();
    expect(running).to.deep.equal(['a2']);
    ends.get('a2')?.();
    await settle();
    expect(running).to.deep.equal(['b1', 'c1']);
    ends.get('b1')?.();
    ends.get('c1')?.();
    await Promise.all(all);
  });

  it('rejects work of a key that has too much waiting work, and of no other key', async () => {
    semaphore = create({ max: 10, maxPerKey: 5, maxQueuedPerKey: 10 });
    const all = [run('a1', 5, 'a'), run('a2', 5, 'a'), run('a3', 5, 'a'), run('b1', 5, 'b'), run('b2', 5, 'b')];
    const failed: unknown = await run('a4', 5, 'a').catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(FairSemaphoreError);
    for (const name of ['a1', 'a2', 'a3', 'b1', 'b2']) {
      await settle();
      ends.get(name)?.();
    }
    await Promise.all(all);
  });
});

const LIMITS = { max: 3, maxPerKey: 2, maxQueuedPerKey: 2 };

/** Reads that end when the test says so. */
class Reads {
  readonly started: string[] = [];
  readonly results = new Map<string, string>();
  readonly #ends = new Map<string, () => void>();
  readonly #semaphore = create(LIMITS);
  readonly #clock: ManualClock;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  /** @param names the key of each is its first letter */
  async start(...names: string[]): Promise<void> {
    for (const name of names) {
      const read = () =>
        new Promise<string>((resolve) => {
          this.started.push(name);
          this.#ends.set(name, () => resolve('read'));
        });
      this.#semaphore.run(name.charAt(0), 1, read, { ms: 1_000, clock: this.#clock }).then(
        (result) => this.results.set(name, result),
        (error: unknown) => this.results.set(name, (error as Error).message),
      );
    }
    await settled();
  }

  async end(name: string): Promise<void> {
    this.#ends.get(name)?.();
    await settled();
  }
}

async function settled(): Promise<void> {
  for (let count = 0; count < 10; count++) await Promise.resolve();
}

describe('FairSemaphore with work of equal weight and a time limit', () => {
  let clock: ManualClock;
  let reads: Reads;

  beforeEach(() => {
    clock = new ManualClock(0);
    reads = new Reads(clock);
  });

  it('leaves room for other keys while the reads of one key do not end', async () => {
    await reads.start('a1', 'a2', 'a3', 'b1');
    expect(reads.started).to.deep.equal(['a1', 'a2', 'b1']);
  });

  it('starts waiting reads in turns of the keys', async () => {
    await reads.start('a1', 'a2', 'b1', 'a3', 'b2', 'c1');
    await reads.end('a1');
    await reads.end('b1');
    await reads.end('a2');
    expect(reads.started).to.deep.equal(['a1', 'a2', 'b1', 'a3', 'b2', 'c1']);
    expect([...reads.results]).to.deep.equal([
      ['a1', 'read'],
      ['b1', 'read'],
      ['a2', 'read'],
    ]);
  });

  it('rejects a read at once if too many of its key are queued', async () => {
    await reads.start('a1', 'a2', 'a3', 'a4', 'a5', 'b1');
    expect([...reads.results]).to.deep.equal([['a5', 'too many reads of a are queued']]);
    expect(reads.started).to.deep.equal(['a1', 'a2', 'b1']);
  });

  it('rejects a read that has waited for too long, and never starts it', async () => {
    await reads.start('a1', 'a2', 'a3');
    clock.advanceTo(1_000);
    await settled();
    expect([...reads.results]).to.deep.equal([['a3', 'earlier reads of a took too long']]);
    await reads.end('a1');
    expect(reads.started).to.deep.equal(['a1', 'a2']);
    await reads.start('a4');
    expect(reads.started).to.deep.equal(['a1', 'a2', 'a4']);
  });

  it('counts a failed read as ended', async () => {
    const wait = { ms: 1_000, clock };
    const semaphore = create({ ...LIMITS, max: 1 });
    const failure = await semaphore.run('a', 1, () => Promise.reject(new Error('away')), wait).catch(String);
    expect(failure).to.equal('Error: away');
    expect(await semaphore.run('b', 1, () => Promise.resolve('read'), wait)).to.equal('read');
  });

  it('never leaves room unused that waiting work may take, and never exceeds its limits', async () => {
    const steps = fc.array(fc.constantFrom('a', 'b', 'c', 'end'), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const semaphore = create({ max: 3, maxPerKey: 2, maxQueuedPerKey: Infinity });
        const wanted: string[] = [];
        const started: string[] = [];
        const ends: (() => void)[] = [];
        let ended = 0;
        for (const step of taken) {
          if (step === 'end') {
            const end = ends.shift();
            if (end !== undefined) ended++;
            end?.();
          } else {
            wanted.push(step);
            void semaphore.run(step, 1, () => {
              started.push(step);
              return new Promise<void>((resolve) => ends.push(resolve));
            });
          }
          await settled();
          const running = started.slice(ended);
          const runningOf = (key: string) => running.filter((each) => each === key).length;
          const waits = (key: string) => wanted.filter((each) => each === key).length > started.filter((each) => each === key).length; // oxfmt-ignore
          expect(running.length).to.be.at.most(3);
          for (const key of ['a', 'b', 'c']) {
            expect(runningOf(key)).to.be.at.most(2);
            if (waits(key)) expect(running.length === 3 || runningOf(key) === 2).to.equal(true);
          }
        }
      }),
    );
  });
});
