import { expect } from 'chai';
import fc from 'fast-check';
import { FairQueue } from './fair-semaphore.js';

const ANY = () => true;

interface Item {
  readonly name: string;
  readonly weight: number;
}

/** Adds an item of weight 1. Its key is the first letter of its name. */
function add(queue: FairQueue<Item>, name: string): boolean {
  return queue.add(name.charAt(0), { name, weight: 1 });
}

function takeAll(queue: FairQueue<Item>): string[] {
  const taken: string[] = [];
  for (let next = queue.take(ANY); next !== undefined; next = queue.take(ANY)) taken.push(next.item.name);
  return taken;
}

describe('FairQueue', () => {
  it('lets keys take turns, and keeps the order within each key', () => {
    const queue = new FairQueue<Item>(10);
    for (const name of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) add(queue, name);
    expect(takeAll(queue)).to.deep.equal(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  it('skips a key whose next item may not be taken, and keeps its position', () => {
    const queue = new FairQueue<Item>(10);
    for (const name of ['a1', 'b1', 'b2']) add(queue, name);
    expect(queue.take((key) => key !== 'a')?.item.name).to.equal('b1');
    expect(queue.take(() => false)).to.equal(undefined);
    expect(takeAll(queue)).to.deep.equal(['a1', 'b2']);
  });

  it('rejects an item of a key that has too many, and of no other key', () => {
    const queue = new FairQueue<Item>(2);
    const first = { name: 'a1', weight: 1 };
    expect(queue.add('a', first)).to.equal(true);
    expect(['a2', 'a3', 'b1'].map((name) => add(queue, name))).to.deep.equal([true, false, true]);
    queue.delete('a', first);
    expect(add(queue, 'a4')).to.equal(true);
    expect(takeAll(queue)).to.deep.equal(['a2', 'b1', 'a4']);
  });

  it('knows the key with the most items', () => {
    const queue = new FairQueue<Item>(10);
    expect(queue.heaviestKey()).to.equal(undefined);
    for (const name of ['a1', 'b1', 'b2', 'c1']) add(queue, name);
    expect([queue.heaviestKey(), queue.weightOf('b'), queue.weightOf('d')]).to.deep.equal(['b', 2, 0]);
    queue.take((key) => key === 'b');
    queue.take((key) => key === 'b');
    expect([queue.heaviestKey(), queue.weightOf('b')]).to.deep.equal(['a', 0]);
  });

  it('never lets a key wait for more than one item of each other key', () => {
    const keys = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(keys, (added) => {
        const queue = new FairQueue<Item>(100);
        added.forEach((key, index) => add(queue, `${key}${index}`));
        const waiting = new Map<string, number>();
        for (const key of added) waiting.set(key, (waiting.get(key) ?? 0) + 1);
        const since = new Map<string, string[]>([...waiting.keys()].map((key) => [key, []]));
        for (let next = queue.take(ANY); next !== undefined; next = queue.take(ANY)) {
          const { key } = next;
          for (const [other, seen] of since) if (other !== key) seen.push(key);
          since.set(key, []);
          waiting.set(key, (waiting.get(key) ?? 0) - 1);
          if (waiting.get(key) === 0) since.delete(key);
          for (const seen of since.values()) expect(new Set(seen).size).to.equal(seen.length);
        }
        expect([...waiting.values()].every((left) => left === 0)).to.equal(true);
      }),
    );
  });
});
