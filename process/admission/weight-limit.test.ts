import { expect } from 'chai';
import { WeightLimit } from './weight-limit.js';

describe('a limit of weight', () => {
  let running: string[];
  let ends: Map<string, () => void>;
  let limit: WeightLimit;

  beforeEach(() => {
    running = [];
    ends = new Map();
    limit = new WeightLimit(10);
  });

  function run(name: string, weight: number): Promise<string> {
    return limit.run(weight, async () => {
      running.push(name);
      await new Promise<void>((resolve) => ends.set(name, resolve));
      running.splice(running.indexOf(name), 1);
      return name;
    });
  }

  /** Lets everything happen that does not wait for more. */
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

  it('starts work in order, while its total weight fits', async () => {
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

  it('runs work alone that weighs more than the limit', async () => {
    const all = [run('a', 100), run('b', 1)];
    await settle();
    expect(running).to.deep.equal(['a']);
    ends.get('a')?.();
    await settle();
    ends.get('b')?.();
    await Promise.all(all);
  });

  it('frees the weight of work that fails', async () => {
    const failed: unknown = await limit
      .run(10, () => Promise.reject(new Error('broken')))
      .catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(Error);
    expect(await limit.run(10, () => Promise.resolve('next'))).to.equal('next');
  });
});
