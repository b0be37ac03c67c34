import { expect } from 'chai';
import fc from 'fast-check';
import { RequestQueue } from './request-queue.js';

const NEVER = new AbortController().signal;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Work that the test ends. */
class Job {
  begun = false;
  end: () => void = () => undefined;
  readonly run = (): Promise<void> => {
    this.begun = true;
    return new Promise((resolve) => (this.end = resolve));
  };
}

describe('the request queue', () => {
  it('runs work on one key in order, and work on other keys in parallel', async () => {
    const turns = new RequestQueue(8);
    const [first, second, other] = [new Job(), new Job(), new Job()];
    const all = [turns.run('a', NEVER, first.run), turns.run('a', NEVER, second.run), turns.run('b', NEVER, other.run)];
    await turn();
    expect([first.begun, second.begun, other.begun]).to.deep.equal([true, false, true]);
    first.end();
    await turn();
    expect(second.begun).to.equal(true);
    second.end();
    other.end();
    await Promise.all(all);
  });

  it('continues after work that failed', async () => {
    const turns = new RequestQueue(1);
    const failed = turns.run('a', NEVER, () => Promise.reject(new Error('boo')));
    const next = turns.run('a', NEVER, () => Promise.resolve(1));
    expect(await failed.catch((error: unknown) => (error as Error).message)).to.equal('boo');
    expect(await next).to.equal(1);
  });

  it('limits the number of workers, and runs the rest in order of arrival', async () => {
    const turns = new RequestQueue(2);
    const jobs = Array.from({ length: 5 }, () => new Job());
    const all = jobs.map((job, index) => turns.run(index === 4 ? undefined : String(index), NEVER, job.run));
    await turn();
    expect(jobs.map(({ begun }) => begun)).to.deep.equal([true, true, false, false, false]);
    jobs[1]!.end();
    await turn();
    expect(jobs.map(({ begun }) => begun)).to.deep.equal([true, true, true, false, false]);
    for (const job of jobs) {
      job.end();
      await turn();
    }
    await Promise.all(all);
  });

  it('frees the worker of work that waits, which continues only when a worker is free', async () => {
    const turns = new RequestQueue(1);
    const [nap, other] = [new Job(), new Job()];
    const log: string[] = [];
    const rested = turns.run('a', NEVER, async (rest) => {
      await rest(nap.run);
      log.push('awake');
    });
    const worked = turns.run('b', NEVER, other.run);
    await turn();
    expect(other.begun).to.equal(true);
    nap.end();
    await turn();
    expect(log).to.deep.equal([]);
    other.end();
    await Promise.all([rested, worked]);
    expect(log).to.deep.equal(['awake']);
    await turns.run(undefined, NEVER, () => Promise.resolve());
  });

  it('lets work that is cancelled during a wait report its error, and counts no worker twice', async () => {
    const turns = new RequestQueue(1);
    const [nap, other, third] = [new Job(), new Job(), new Job()];
    const late = new AbortController();
    const rested = turns.run('a', late.signal, async (rest) => {
      await rest(nap.run);
      return 'too late';
    });
    const worked = turns.run('b', NEVER, other.run);
    await turn();
    nap.end();
    await turn();
    late.abort();
    expect(await rested).to.equal('too late');
    const last = turns.run('c', NEVER, third.run);
    await turn();
    expect(third.begun).to.equal(false);
    other.end();
    await turn();
    third.end();
    await Promise.all([worked, last]);
  });

  it('never starts work that was cancelled before, and keeps the order of the rest', async () => {
    const turns = new RequestQueue(1);
    const [first, second, third] = [new Job(), new Job(), new Job()];
    const gone = new AbortController();
    const one = turns.run('a', NEVER, first.run);
    const two = turns.run('a', gone.signal, second.run);
    const three = turns.run('a', NEVER, third.run);
    await turn();
    gone.abort(new Error('gone'));
    expect(await two.catch((error: unknown) => (error as Error).message)).to.equal('gone');
    await turn();
    expect([second.begun, third.begun]).to.deep.equal([false, false]);
    first.end();
    await turn();
    expect([second.begun, third.begun]).to.deep.equal([false, true]);
    third.end();
    await Promise.all([one, three]);
  });

  it('loses no worker and mixes no keys, for any order of cancellations', async () => {
    const step = fc.record({ key: fc.constantFrom('a', 'b', undefined), givesUp: fc.nat(3), fails: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), fc.integer({ min: 1, max: 3 }), async (steps, workers) => {
        const turns = new RequestQueue(workers);
        const busy = new Map<string, number>();
        let working = 0;
        const runs = steps.map(async ({ key, givesUp, fails }) => {
          const control = new AbortController();
          const run = turns.run(key, control.signal, async () => {
            expect(++working).to.be.at.most(workers);
            if (key !== undefined) expect(busy.get(key) ?? 0).to.equal(0);
            if (key !== undefined) busy.set(key, 1);
            await turn();
            if (key !== undefined) busy.set(key, 0);
            working--;
            if (fails) throw new Error('failed');
          });
          const outcome = run.then(
            () => 'done',
            (error: unknown) => (error as Error).message,
          );
          for (let turns = 0; turns < givesUp; turns++) await turn();
          if (givesUp > 0) control.abort(new Error('given up'));
          return outcome;
        });
        for (const outcome of await Promise.all(runs)) expect(outcome).to.be.oneOf(['done', 'failed', 'given up']);
        // all workers are free again
        const jobs = Array.from({ length: workers }, () => new Job());
        const last = jobs.map((job) => turns.run(undefined, NEVER, job.run));
        await turn();
        expect(jobs.every(({ begun }) => begun)).to.equal(true);
        for (const job of jobs) job.end();
        await Promise.all(last);
      }),
      { numRuns: 200 },
    );
  });
});
