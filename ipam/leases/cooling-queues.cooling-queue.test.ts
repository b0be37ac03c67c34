import { expect } from 'chai';
import fc from 'fast-check';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { readLease } from '../../addressing/lease/lease.js';
import { CoolingQueue } from './cooling-queues.js';

const NOW = Date.UTC(2026, 0, 1);
const MAC = '02:00:00:00:00:ab';

/** The n-th of many leases. */
function released(n: number, at: number, mac?: string) {
  const address = `10.0.${n >> 8}.${n & 255}`;
  return readLease(leaseOf(address, 100, { releasedAt: NOW + at, ...(mac !== undefined && { mac }) }));
}

describe('CoolingQueue', () => {
  it('returns the first sticky lease and the first other lease separately', () => {
    const [kept, older, plain] = [released(1, 20, MAC), released(2, 10, MAC), released(3, 50)];
    const times = { cooldownMs: 100, stickyMs: 1000, isStickyForClaims: true };
    const queue = new CoolingQueue(times, [kept, plain, older]);
    const first = { lease: plain, cooledAt: NOW + 150 };
    expect(queue.peek(() => false)).to.deep.equal({ count: 3, first, sticky: { lease: older, cooledAt: NOW + 110 } });
    expect(queue.peek((lease) => lease === older).sticky).to.deep.equal({ lease: kept, cooledAt: NOW + 120 });
    queue.delete(plain);
    queue.delete(older);
    expect(queue.peek(() => false)).to.deep.equal({ count: 1, sticky: { lease: kept, cooledAt: NOW + 120 } });
  });

  it('does not fit other times', () => {
    const times = { cooldownMs: 100, stickyMs: 1000 };
    const queue = new CoolingQueue(times, [released(1, 0, MAC)]);
    expect(queue.peek(() => false).sticky, 'the pool does not keep those of claims').to.equal(undefined);
    expect(
      [times, { ...times, isStickyForClaims: true }, { ...times, stickyMs: 0 }].map((each) => queue.isFor(each)),
    ).to.deep.equal([true, false, false]);
  });

  it('leaves out leases that are being deleted', () => {
    const { metadata, ...rest } = released(1, 0);
    const lease = { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(new CoolingQueue({ cooldownMs: 0, stickyMs: 0 }, [lease]).peek(() => false)).to.deep.equal({ count: 0 });
  });

  it('behaves like a sorted list for any sequence of changes', () => {
    const upTo = (max: number) => fc.nat({ max });
    const step = fc.record({ n: upTo(300), at: upTo(50), end: fc.boolean(), pending: upTo(4) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
        const queue = new CoolingQueue({ cooldownMs: 10, stickyMs: 1, isStickyForClaims: true }, []);
        const model = new Map<number, ReturnType<typeof released>>();
        for (const { n, at, end, pending } of steps) {
          const known = model.get(n);
          if (known !== undefined) queue.delete(known);
          model.delete(n);
          if (!end) {
            model.set(n, released(n, at, n % 3 === 0 ? MAC : undefined));
            queue.add(model.get(n)!);
          }
          const passed = [...model.values()].slice(0, pending);
          const others = [...model.values()].slice(pending);
          const { count, first, sticky } = queue.peek((lease) => passed.includes(lease));
          expect(count).to.equal(model.size);
          for (const [found, mac] of [
            [first, undefined],
            [sticky, MAC],
          ] as const) {
            const ends = others.filter((lease) => lease.mac === mac).map(({ releasedAt }) => releasedAt! + 10);
            expect(found?.cooledAt).to.equal(ends.length === 0 ? undefined : Math.min(...ends));
            expect(found === undefined || !passed.includes(found.lease)).to.equal(true);
          }
        }
      }),
      { numRuns: 30 },
    );
  });
});
