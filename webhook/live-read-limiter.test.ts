import { expect } from 'chai';
import { ManualClock } from '../test/manual-clock.js';
import { LiveReadLimiter } from './live-read-limiter.js';

const LIMITS = { maxConcurrent: 3, maxConcurrentPerNamespace: 2, maxQueuedPerNamespace: 2 };

/** Reads that end when the test says so. */
class Reads {
  readonly started: string[] = [];
  readonly results = new Map<string, string>();
  readonly #ends = new Map<string, () => void>();
  readonly #limiter: LiveReadLimiter;

  constructor(clock: ManualClock) {
    this.#limiter = new LiveReadLimiter(LIMITS, clock);
  }

  /** @param names the namespace of each is its first letter */
  async start(...names: string[]): Promise<void> {
    for (const name of names) {
      const read = () =>
        new Promise<string>((resolve) => {
          this.started.push(name);
          this.#ends.set(name, () => resolve('read'));
        });
      this.#limiter.run(name.charAt(0), 1_000, read).then(
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

describe('the limit of live reads', () => {
  let clock: ManualClock;
  let reads: Reads;

  beforeEach(() => {
    clock = new ManualClock(0);
    reads = new Reads(clock);
  });

  it('leaves room for other namespaces while the reads of one do not end', async () => {
    await reads.start('a1', 'a2', 'a3', 'b1');
    expect(reads.started).to.deep.equal(['a1', 'a2', 'b1']);
  });

  it('starts queued reads of the namespaces in turn', async () => {
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

  it('rejects a read at once if too many of its namespace are queued', async () => {
    await reads.start('a1', 'a2', 'a3', 'a4', 'a5', 'b1');
    expect([...reads.results]).to.deep.equal([['a5', 'too many live reads of namespace a are queued']]);
    expect(reads.started).to.deep.equal(['a1', 'a2', 'b1']);
  });

  it('rejects a read after its waiting time and never starts it afterwards', async () => {
    await reads.start('a1', 'a2', 'a3');
    clock.advanceTo(1_000);
    await settled();
    expect([...reads.results]).to.deep.equal([['a3', 'earlier live reads of namespace a took too long']]);
    await reads.end('a1');
    expect(reads.started).to.deep.equal(['a1', 'a2']);
    await reads.start('a4');
    expect(reads.started).to.deep.equal(['a1', 'a2', 'a4']);
  });

  it('counts a failed read as ended', async () => {
    const limiter = new LiveReadLimiter({ ...LIMITS, maxConcurrent: 1 }, clock);
    const failure = await limiter.run('a', 1_000, () => Promise.reject(new Error('away'))).catch(String);
    expect(failure).to.equal('Error: away');
    expect(await limiter.run('b', 1_000, () => Promise.resolve('read'))).to.equal('read');
  });
});
