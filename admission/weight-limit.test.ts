import { expect } from 'chai';
import { WeightLimit, WeightLimitError } from './weight-limit.js';

describe('a limit of weight', () => {
  let running: string[];
  let ends: Map<string, () => void>;
  let limit: WeightLimit;

  beforeEach(() => {
    running = [];
    ends = new Map();
    limit = new WeightLimit({ max: 10, maxPerKey: 10, maxWaitingPerKey: 100 });
  });

  function run(name: string, weight: number, key = ''): Promise<string> {
    return limit.run(key, weight, async () => {
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
      .run('', 10, () => Promise.reject(new Error('broken')))
      .catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(Error);
    expect(await limit.run('', 10, () => Promise.resolve('next'))).to.equal('next');
  });

  it('leaves room for others while the work of one key lasts', async () => {
    limit = new WeightLimit({ max: 10, maxPerKey: 5, maxWaitingPerKey: 100 });
    const all = [run('a1', 5, 'a'), run('a2', 5, 'a'), run('a3', 5, 'a'), run('b1', 1, 'b')];
    await settle();
    expect(running).to.deep.equal(['a1', 'b1']);
    for (const name of ['a1', 'a2', 'a3', 'b1']) {
      ends.get(name)?.();
      await settle();
    }
    await Promise.all(all);
  });

  it('lets keys take turns, and lighter work does not overtake what is next', async () => {
    limit = new WeightLimit({ max: 10, maxPerKey: 6, maxWaitingPerKey: 100 });
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

  it('refuses work of a key of which too much waits already, and of no other', async () => {
    limit = new WeightLimit({ max: 10, maxPerKey: 5, maxWaitingPerKey: 10 });
    const all = [run('a1', 5, 'a'), run('a2', 5, 'a'), run('a3', 5, 'a'), run('b1', 5, 'b'), run('b2', 5, 'b')];
    const failed: unknown = await run('a4', 5, 'a').catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(WeightLimitError);
    for (const name of ['a1', 'a2', 'a3', 'b1', 'b2']) {
      await settle();
      ends.get(name)?.();
    }
    await Promise.all(all);
  });
});
