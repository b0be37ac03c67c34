import { expect } from 'chai';
import fc from 'fast-check';
import { FairQueue } from './fair-queue.js';

const ANY = () => true;

function takeAll(queue: FairQueue<string>): string[] {
  const taken: string[] = [];
  for (let next = queue.take(ANY); next !== undefined; next = queue.take(ANY)) taken.push(next.item);
  return taken;
}

describe('the fair queue', () => {
  it('serves keys in turn and keeps the order within each key', () => {
    const queue = new FairQueue<string>(10);
    for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) queue.add(item.charAt(0), item);
    expect(takeAll(queue)).to.deep.equal(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  it('skips a key that is not eligible and keeps its position', () => {
    const queue = new FairQueue<string>(10);
    for (const item of ['a1', 'b1', 'b2']) queue.add(item.charAt(0), item);
    expect(queue.take((key) => key !== 'a')?.item).to.equal('b1');
    expect(queue.take(() => false)).to.equal(undefined);
    expect(takeAll(queue)).to.deep.equal(['a1', 'b2']);
  });

  it('rejects only items of a key whose queue is full', () => {
    const queue = new FairQueue<string>(2);
    expect(['a1', 'a2', 'a3', 'b1'].map((item) => queue.add(item.charAt(0), item))).to.deep.equal([
      true,
      true,
      false,
      true,
    ]);
    queue.delete('a', 'a1');
    expect(queue.add('a', 'a4')).to.equal(true);
    expect(takeAll(queue)).to.deep.equal(['a2', 'b1', 'a4']);
  });

  it('never lets a key wait for more than one item of each other key', () => {
    const keys = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(keys, (added) => {
        const queue = new FairQueue<string>(100);
        added.forEach((key, index) => queue.add(key, `${key}${index}`));
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
