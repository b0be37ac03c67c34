import { expect } from 'chai';
import fc from 'fast-check';
import { leaseOf } from '../../test/lease-objects.js';
import { readLease } from '../core/lease.js';
import { CoolingQueue } from './cooling-queue.js';

const NOW = Date.UTC(2026, 0, 1);
const MAC = '02:00:00:00:00:ab';

/** The n-th of many leases. */
function released(n: number, at: number, mac?: string) {
  const address = `10.0.${n >> 8}.${n & 255}`;
  return readLease(leaseOf(address, 100, { releasedAt: NOW + at, ...(mac !== undefined && { mac }) }));
}

describe('CoolingQueue', () => {
  it('puts those that wait for a MAC address in their own time', () => {
    const sticky = released(1, 0, MAC);
    const plain = released(2, 50);
    const queue = new CoolingQueue({ cooldownMs: 100, stickyMs: 1000 }, [sticky, plain]);
    expect(queue.look(() => false)).to.deep.equal({ count: 2, first: { lease: plain, at: NOW + 150 } });
    queue.delete(plain);
    expect(queue.look(() => false)).to.deep.equal({ count: 1, first: { lease: sticky, at: NOW + 1000 } });
  });

  it('leaves out those that are being deleted', () => {
    const { metadata, ...rest } = released(1, 0);
    const lease = { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(new CoolingQueue({ cooldownMs: 0, stickyMs: 0 }, [lease]).look(() => false)).to.deep.equal({ count: 0 });
  });

  it('gives what a sorted list would, whatever comes, goes and is being taken', () => {
    const step = fc.record({
      n: fc.nat({ max: 300 }),
      at: fc.nat({ max: 50 }),
      end: fc.boolean(),
      pending: fc.nat({ max: 4 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
        const queue = new CoolingQueue({ cooldownMs: 10, stickyMs: 0 }, []);
        const model = new Map<number, ReturnType<typeof released>>();
        for (const { n, at, end, pending } of steps) {
          const known = model.get(n);
          if (known !== undefined) queue.delete(known);
          model.delete(n);
          if (!end) {
            model.set(n, released(n, at));
            queue.add(model.get(n)!);
          }
          const passed = [...model.values()].slice(0, pending);
          const others = [...model.values()].slice(pending).map(({ releasedAt }) => releasedAt! + 10);
          const { count, first } = queue.look((lease) => passed.includes(lease));
          expect(count).to.equal(model.size);
          expect(first?.at).to.equal(others.length === 0 ? undefined : Math.min(...others));
          expect(first === undefined || !passed.includes(first.lease)).to.equal(true);
        }
      }),
      { numRuns: 30 },
    );
  });
});
