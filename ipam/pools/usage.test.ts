import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { ManualClock } from '../../test/manual-clock.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { compilePool } from '../../addressing/pool/pool.js';
import type { LeaseChange } from '../leases/lease-book.js';
import type { LeaseBook } from '../leases/lease-book.js';
import { type LeaseCounts, PoolUsage } from './usage.js';

/** Leases that a test changes. */
class Leases implements Pick<LeaseBook, 'get' | 'ofPool' | 'ofClaim' | 'onChange'> {
  readonly #records = new Map<string, LeaseRecord>();
  readonly #handlers: ((change: LeaseChange) => void)[] = [];

  get(name: string): LeaseRecord | undefined {
    return this.#records.get(name);
  }

  ofPool(): Iterable<LeaseRecord> {
    return this.#records.values();
  }

  ofClaim(): readonly LeaseRecord[] {
    return [...this.#records.values()];
  }

  onChange(handler: (change: LeaseChange) => void): void {
    this.#handlers.push(handler);
  }

  change(name: string, after: LeaseRecord | undefined): void {
    const before = this.#records.get(name);
    if (after === undefined) this.#records.delete(name);
    else this.#records.set(name, after);
    for (const handler of this.#handlers) handler({ ...(before && { before }), ...(after && { after }) });
  }
}

describe('the leases of a pool that are counted in slices', () => {
  const compiled = compilePool(adminPool('blue'));
  const pool = compiled.ok ? compiled.pool : undefined;
  const { signal } = new AbortController();
  let clock: ManualClock;
  let leases: Leases;
  let isUsed: boolean;
  let usage: PoolUsage;

  beforeEach(() => {
    clock = new ManualClock(0);
    leases = new Leases();
    isUsed = true;
    // each lease takes 15 ms
    usage = usageOf(() => (clock.advanceTo(clock.now() + 15), isUsed));
    for (let n = 1; n <= 6; n++) put(lease(`10.0.0.${n}`));
  });

  function usageOf(used: () => boolean): PoolUsage {
    return new PoolUsage(leases, used);
  }

  function lease(address: string): LeaseRecord {
    return readLease(leaseOf(address, 1, { uid: address, namespace: 'vms' }));
  }

  function put(record: LeaseRecord): void {
    leases.change(record.metadata.name, record);
  }

  it('are not counted again afterwards', async () => {
    await usage.prepare('blue', pool, clock, signal);
    const at = clock.now();
    expect(usage.of('blue', pool).in('held')).to.equal(6);
    expect(clock.now()).to.equal(at);
  });

  it('are not counted again for a change of the spec to say how many stopped VMs hold', async () => {
    isUsed = false;
    await usage.prepare('blue', pool, clock, signal);
    const at = clock.now();
    expect(usage.stoppedOf('blue', 4)).to.equal(6);
    expect(clock.now()).to.equal(at);
  });

  it('are counted as they are at the end, whatever changes meanwhile', async () => {
    const prepared = usage.prepare('blue', pool, clock, signal);
    // two are counted by now
    const [first, second, third, fourth, fifth] = [1, 2, 3, 4, 5].map((n) => lease(`10.0.0.${n}`));
    for (const gone of [first, fifth]) leases.change(gone?.metadata.name ?? '', undefined);
    for (const released of [second, fourth]) if (released !== undefined) put({ ...released, releasedAt: 1 });
    put(lease('10.0.0.9'));
    await nextTurn();
    isUsed = false;
    usage.updateClaim(`vms/${third?.owner?.name ?? ''}`);
    await prepared;
    const countsOf = (counts: LeaseCounts) => [counts.in('held'), counts.in('released'), counts.stopped];
    expect(countsOf(usage.of('blue', pool))).to.deep.equal(countsOf(usageOf(() => false).of('blue', pool)));
    expect(countsOf(usage.of('blue', pool))).to.deep.equal([3, 2, 3]);
  });
});
