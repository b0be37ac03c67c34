import { expect } from 'chai';
import { type LeaseOptions, compiledPool, leaseOf, networkDataLock } from '../test/objects/lease-objects.js';
import { Inventory, ReleasedAddresses, readInventoryEntry } from './inventory.js';
import fc from 'fast-check';

describe('The inventory of addresses', () => {
  const RELEASED_AT = Date.UTC(2026, 0, 1);

  function free(more: LeaseOptions): number {
    const inventory = new Inventory();
    inventory.add(readInventoryEntry(leaseOf('10.0.0.1', 1, { releasedAt: RELEASED_AT, ...more })));
    return inventory.free(compiledPool(), 4, { blocks: [], cooledSince: RELEASED_AT }).total;
  }

  it('counts a released address as free after its cool-down, but never one that a Secret may still hold', () => {
    expect(free({})).to.equal(6);
    expect(free({ networkData: networkDataLock() })).to.equal(5);
  });
});

const ADDRESSES = 12;

describe('released addresses of a pool and family', () => {
  const cases = [
    { name: 'are counted once they have cooled down', since: 20, range: [0, 9], count: 2 },
    { name: 'are not counted before', since: 19, range: [0, 9], count: 1 },
    { name: 'are counted only within the requested range', since: 30, range: [2, 3], count: 1 },
    { name: 'are 0 without a release', since: 30, range: [5, 9], count: 0 },
  ] as const;
  for (const { name, since, range, count } of cases) {
    it(name, () => {
      const released = new ReleasedAddresses();
      released.set(1n, 10);
      released.set(2n, 20);
      released.set(4n, 30);
      released.delete(4n);
      const [first, last] = range;
      expect(released.cooled(since).countIn(BigInt(first), BigInt(last))).to.equal(count);
    });
  }

  it('cool down anew after another release', () => {
    const released = new ReleasedAddresses();
    released.set(1n, 10);
    released.set(1n, 30);
    expect([20, 30].map((since) => released.cooled(since).countIn(1n, 1n))).to.deep.equal([0, 1]);
  });

  it('are counted correctly for any cool-down of the pool', () => {
    const address = fc.nat(ADDRESSES);
    const change = fc.record({ address, releasedAt: fc.option(fc.nat(20), { nil: undefined }) });
    const question = fc.record({ first: address, last: address, since: fc.nat(20) });
    fc.assert(
      fc.property(fc.array(change), fc.array(question), (changes, questions) => {
        const released = new ReleasedAddresses();
        const known = new Map<number, number>();
        for (const { address, releasedAt } of changes) {
          if (releasedAt === undefined) released.delete(BigInt(address));
          else released.set(BigInt(address), releasedAt);
          if (releasedAt === undefined) known.delete(address);
          else known.set(address, releasedAt);
        }
        for (const { first, last, since } of questions) {
          const expected = [...known].filter(([value, at]) => value >= first && value <= last && at <= since).length;
          expect(released.cooled(since).countIn(BigInt(first), BigInt(last))).to.equal(expected);
        }
      }),
    );
  });
});
