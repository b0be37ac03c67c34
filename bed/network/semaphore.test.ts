import { expect } from 'chai';
import { Semaphore } from './semaphore.js';

describe('A semaphore', () => {
  it('limits the number of running tasks, and starts others in their order', async () => {
    const slots = new Semaphore(2);
    const begun: number[] = [];
    const ends: (() => void)[] = [];
    const all = [0, 1, 2, 3].map((n) =>
      slots.run(() => {
        begun.push(n);
        return new Promise<void>((resolve) => (ends[n] = resolve));
      }),
    );
    await Promise.resolve();
    expect(begun).to.deep.equal([0, 1]);
    ends[1]!();
    await all[1];
    expect(begun).to.deep.equal([0, 1, 2]);
    ends[0]!();
    await all[0];
    ends[2]!();
    ends[3]!();
    await Promise.all(all);
    expect(begun).to.deep.equal([0, 1, 2, 3]);
  });

  it('continues after a task has failed', async () => {
    const slots = new Semaphore(1);
    const failure = await slots.run(() => Promise.reject(new Error('no'))).catch((error: unknown) => error);
    expect(failure).to.be.an('error');
    expect(await slots.run(() => Promise.resolve('yes'))).to.equal('yes');
  });
});
