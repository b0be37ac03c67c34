import { expect } from 'chai';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { releaseTime, withCoolingStart } from './cooling-start.js';
import { type LeaseRecord, mayExpire, readLease } from './lease.js';

const NOW = Date.UTC(2026, 0, 1);
const STEP_MS = 300_000;
const TIMES = { cooldownMs: 60_000, stickyMs: 0 };

/** @param at of the release, by the clock of the process that released it; undefined: held */
function lease(at: number | undefined, { uid = 'u1', version = 100 } = {}): LeaseRecord {
  return readLease(leaseOf('10.0.0.5', version, { uid, ...(at !== undefined && { releasedAt: NOW + at }) }));
}

describe('the start of a cool-down', () => {
  const SEEN = withCoolingStart(lease(-5), { known: lease(undefined), hasSynced: true, now: NOW });
  const LATER = { hasSynced: true, now: NOW + 40_000 };
  const rows: {
    name: string;
    given: LeaseRecord;
    known?: LeaseRecord;
    at?: { hasSynced: boolean; now: number };
    expect: number;
  }[] = [
    { name: 'is when the process saw the release', given: lease(-5), known: lease(undefined), expect: 0 },
    {
      name: 'is not earlier if the clock of the releasing process was set back',
      given: lease(-STEP_MS),
      known: lease(undefined),
      expect: 0,
    },
    {
      name: 'is not later if the clock of the releasing process was set forward',
      given: lease(STEP_MS),
      known: lease(undefined),
      expect: 0,
    },
    { name: 'stays when a list shows the release again', given: lease(-5), known: SEEN, at: LATER, expect: 0 },
    {
      name: 'stays when something else in the lease changes',
      given: lease(-5, { version: 101 }),
      known: SEEN,
      at: LATER,
      expect: 0,
    },
    {
      name: 'is new after another release, even if the allocation before it was not seen',
      given: lease(30_000, { version: 101 }),
      known: SEEN,
      at: LATER,
      expect: 40_000,
    },
    {
      name: 'is new for another lease of the address',
      given: lease(-5, { uid: 'u2' }),
      known: SEEN,
      at: LATER,
      expect: 40_000,
    },
    {
      name: 'is when a list after a lost watch shows it, for a lease that was not known',
      given: lease(-STEP_MS),
      at: LATER,
      expect: 40_000,
    },
    {
      name: 'is the time in the lease if it was released before the process started',
      given: lease(-50_000),
      at: { hasSynced: false, now: NOW },
      expect: -50_000,
    },
    { name: 'is not in the future', given: lease(STEP_MS), at: { hasSynced: false, now: NOW }, expect: 0 },
  ];
  for (const { name, given, known, at = { hasSynced: true, now: NOW }, expect: since } of rows) {
    it(name, () => {
      const record = withCoolingStart(given, { known, ...at });
      const end = NOW + since + TIMES.cooldownMs;
      expect([end - 1, end].map((now) => mayExpire(record, TIMES, now))).to.deep.equal([false, true]);
    });
  }

  it('does not exist for a held lease', () => {
    expect(withCoolingStart(lease(undefined), { known: SEEN, ...LATER }).coolsSince).to.equal(undefined);
  });
});

describe('releaseTime', () => {
  const rows = [
    { name: 'is the time of day', wall: NOW, expect: NOW },
    { name: 'is later after the clock was set forward', wall: NOW + STEP_MS, expect: NOW + STEP_MS },
    { name: 'is not earlier after the clock was set back', wall: NOW - STEP_MS, expect: NOW },
    {
      name: 'is the time of day with ten minutes more if the clock was wrong by more when the process started',
      wall: NOW - 7_200_000,
      expect: NOW - 6_600_000,
    },
  ];
  for (const { name, wall, expect: time } of rows) {
    it(name, () => expect(releaseTime({ now: () => NOW, wall: () => wall })).to.equal(time));
  }
});
