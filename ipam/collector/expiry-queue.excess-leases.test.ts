import { expect } from 'chai';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { type LeaseTimesLookup, MAX_RELEASED_LEASES, timesWithoutExcess } from './expiry-queue.js';

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

  it('keep their times whatever their number in an administrator’s pool', () => {
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
