import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import { REUSE_MS } from '../../addressing/lease/lease-times.js';
import { type LeaseRecord, type LeaseTimes, readLease } from '../../addressing/lease/lease.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import {
  ExpiryQueue,
  type LeaseTimesLookup,
  MAX_RELEASED_LEASES,
  leaseTimesLookup,
  timesWithoutExcess,
} from './expiry-queue.js';
import { LeakWorld } from './testing/leak-world.js';
import { leaseOf } from '../../test/objects/lease-objects.js';

const START = Date.UTC(2026, 0, 1);
const COOLING: LeaseTimes = { cooldownMs: 60_000, stickyMs: 0 };

/** @param seconds after the start */
function release(world: LeakWorld, address: string, seconds: number, more: Partial<AddressLease['spec']> = {}) {
  const lease = world.addLease(address, world.addClaim(`c${address}`));
  const releasedAt = new Date(START + seconds * 1_000).toISOString();
  return world.put('addressleases', { ...lease, spec: { ...lease.spec, releasedAt, ...more } });
}

describe('ExpiryQueue', () => {
  function queueOf(world: LeakWorld, timesOf: LeaseTimesLookup): ExpiryQueue {
    world.deliverAll();
    const { book } = world;
    const queue = new ExpiryQueue({ book, timesOf, isDerived: () => false, minCooldownMs: COOLING.cooldownMs });
    book.onChange((change) => queue.observe(change));
    runAtOnce(queue.rebuild());
    return queue;
  }

  function takeAt(queue: ExpiryQueue, seconds: number, limit = 10): string[] {
    return queue.take(START + seconds * 1_000, limit).map(({ metadata }) => metadata.name);
  }

  function dueAt(seconds: number, timesOf: LeaseTimesLookup, limit = 10) {
    const world = new LeakWorld();
    for (const last of [1, 2, 3]) release(world, `10.0.0.${last}`, last);
    release(world, '10.0.0.9', 0, { mac: '02:00:00:00:00:01' });
    const queue = queueOf(world, timesOf);
    return { due: takeAt(queue, seconds, limit), next: (queue.nextAt - START) / 1_000 };
  }

  it('returns none before their time, and the time of the next one', () => {
    expect(dueAt(59, () => COOLING)).to.deep.equal({ due: [], next: 60 });
  });

  it('returns leases whose time is over, to the millisecond', () => {
    expect(dueAt(61, () => COOLING)).to.deep.equal({ due: ['blue.10-0-0-9', 'blue.10-0-0-1'], next: 62 });
  });

  it('keeps leases for the sticky time if the pool is sticky', () => {
    const times = { cooldownMs: 60_000, stickyMs: 3_600_000, isStickyForClaims: true };
    const due = ['blue.10-0-0-1', 'blue.10-0-0-2', 'blue.10-0-0-3'];
    expect(dueAt(100, () => times)).to.deep.equal({ due, next: 3_600 });
  });

  it('never returns leases whose times are unknown', () => {
    expect(dueAt(1e6, () => undefined)).to.deep.equal({ due: [], next: Infinity });
  });

  it('returns at most the limit, those first whose time ended first', () => {
    expect(dueAt(100, () => COOLING, 2)).to.deep.equal({ due: ['blue.10-0-0-9', 'blue.10-0-0-1'], next: 62 });
  });

  it('never returns leases that are being deleted', () => {
    const world = new LeakWorld();
    const lease = release(world, '10.0.0.1', 0);
    world.put('addressleases', {
      ...lease,
      metadata: { ...lease.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    });
    const queue = queueOf(world, () => COOLING);
    expect([takeAt(queue, 1e6), queue.nextAt]).to.deep.equal([[], Infinity]);
  });

  it('looks a few times at each lease when the times of many become longer', () => {
    const world = new LeakWorld();
    for (let n = 0; n < 400; n++)
      release(world, `10.0.${n >> 8}.${n & 255}`, 0, { pool: n % 2 === 0 ? 'longer' : 'other' });
    let times = COOLING;
    let looks = 0;
    const queue = queueOf(world, ({ pool }) => {
      looks++;
      return pool === 'longer' ? times : COOLING;
    });
    times = { ...COOLING, cooldownMs: 600_000 };
    looks = 0;
    expect(takeAt(queue, 60, 1_000)).to.have.length(200);
    expect(looks).to.be.lessThan(1_000);
  });

  it('keeps the lease of a pod a little longer, for the next pod of its node', () => {
    const world = new LeakWorld();
    const lease = world.addLease('10.0.0.1', world.addPod('web'));
    const releasedAt = new Date(START).toISOString();
    world.put('addressleases', { ...lease, spec: { ...lease.spec, node: 'n1', releasedAt } });
    const queue = queueOf(world, () => COOLING);
    expect(takeAt(queue, 60)).to.deep.equal([]);
    expect(queue.nextAt).to.equal(START + 60_000 + REUSE_MS);
    expect(takeAt(queue, 70)).to.deep.equal(['blue.10-0-0-1']);
  });

  it('follows changes of leases', () => {
    const world = new LeakWorld();
    const lease = release(world, '10.0.0.1', 0);
    const queue = queueOf(world, () => COOLING);
    const { releasedAt: _ended, ...spec } = lease.spec;
    world.put('addressleases', { ...lease, spec });
    release(world, '10.0.0.2', 5);
    world.deliverAll();
    expect(queue.nextAt).to.equal(START + 65_000);
    expect(takeAt(queue, 100)).to.deep.equal(['blue.10-0-0-2']);
    expect(takeAt(queue, 100), 'once').to.deep.equal([]);
  });

  it('keeps a lease whose pool has got a longer time since', () => {
    const world = new LeakWorld();
    release(world, '10.0.0.1', 0);
    let times = COOLING;
    const queue = queueOf(world, () => times);
    times = { cooldownMs: 90_000, stickyMs: 0 };
    expect(takeAt(queue, 61)).to.deep.equal([]);
    expect(queue.nextAt).to.equal(START + 90_000);
  });
});

describe('leaseTimesLookup', () => {
  const record = readLease(release(new LeakWorld(), '10.0.0.1', 0));
  const served = (cooldownMs: number, stickyMs = 0) => ({
    pool: () => ({ cooldownMs, stickyMs, isStickyForClaims: true }),
    stateOf: () => ({}),
  });
  const STICKY = { cooldownMs: 60_000, stickyMs: 5, isStickyForClaims: true };
  const rows = [
    { name: 'returns the times of the pool', given: served(90_000, 5), expect: { ...STICKY, cooldownMs: 90_000 } },
    {
      name: 'returns no sticky time if the feature gate is off',
      given: served(90_000, 5),
      stickyMAC: false,
      expect: { ...STICKY, cooldownMs: 90_000, stickyMs: 0 },
    },
    { name: 'returns at least twice the maximum staleness', given: served(10_000, 5), expect: STICKY },
    {
      name: 'returns only the minimum if the pool is gone',
      given: { pool: () => undefined, stateOf: () => undefined },
      expect: COOLING,
    },
    {
      name: 'returns no times if the pool is invalid, which keeps its leases',
      given: { pool: () => undefined, stateOf: () => ({}) },
      expect: undefined,
    },
  ];
  for (const { name, given, stickyMAC = true, expect: expected } of rows) {
    it(name, () =>
      expect(leaseTimesLookup(given as never, { maxStalenessMs: 30_000, stickyMAC })(record)).to.deep.equal(expected),
    );
  }
});

const HOUR = { cooldownMs: 3_600_000, stickyMs: 7_200_000 };
const MINIMUM = { cooldownMs: 60_000, stickyMs: 0 };

describe('The released leases of a pool', () => {
  const { metadata, ...held } = readLease(leaseOf('10.0.0.5', 1));

  function released(count: number, pool: string, more: Partial<LeaseRecord> = {}): LeaseRecord[] {
    return Array.from({ length: count }, (_, n) => ({
      ...held,
      ...{ metadata: { ...metadata, uid: `${pool}-${n}` }, pool, releasedAt: 1_000 + n, ...more },
    }));
  }

  function timesOfAll(...given: Parameters<typeof timesWithoutExcess>): LeaseTimesLookup {
    return runAtOnce(timesWithoutExcess(...given));
  }

  /** The UIDs of the leases that only cool down for the minimum time. */
  function shortened(leases: readonly LeaseRecord[], isDerived = (pool: string) => pool !== 'office'): string[] {
    const timesOf = timesOfAll(leases, () => HOUR, { isDerived, minCooldownMs: MINIMUM.cooldownMs });
    return leases.filter((each) => timesOf(each)?.cooldownMs === MINIMUM.cooldownMs).map((each) => each.metadata.uid);
  }

  it('keep their times up to the limit, each pool for itself', () => {
    const leases = [...released(MAX_RELEASED_LEASES, 'blue.vms'), ...released(MAX_RELEASED_LEASES, 'blue.lab')];
    expect(shortened(leases)).to.deep.equal([]);
  });

  it('beyond the limit are kept for the minimum time, the oldest first, also if they are sticky', () => {
    const leases = released(MAX_RELEASED_LEASES + 2, 'blue.vms').reverse();
    expect(shortened(leases).sort()).to.deep.equal(['blue.vms-0', 'blue.vms-1']);
    const timesOf = timesOfAll(leases, () => HOUR, { isDerived: () => true, minCooldownMs: 60_000 });
    expect(leases.map(timesOf).filter((times) => times?.stickyMs === 0)).to.have.length(2);
  });

  it('keep their times in an administrator’s pool, however many they are', () => {
    expect(shortened(released(MAX_RELEASED_LEASES + 2, 'office'))).to.deep.equal([]);
  });

  it('do not count if they are held, quarantined or reserved', () => {
    const others = [
      ...released(MAX_RELEASED_LEASES, 'blue.vms').map(({ releasedAt: _released, ...rest }) => rest),
      ...released(MAX_RELEASED_LEASES, 'blue.vms', { reserved: true }),
    ];
    expect(shortened([...released(10, 'blue.vms'), ...others])).to.deep.equal([]);
  });

  it('stay if their times are unknown', () => {
    const leases = released(MAX_RELEASED_LEASES + 1, 'blue.vms');
    const timesOf = timesOfAll(leases, () => undefined, { isDerived: () => true, minCooldownMs: 60_000 });
    expect(new Set(leases.map(timesOf))).to.deep.equal(new Set([undefined]));
  });
});
