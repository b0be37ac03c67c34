import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { ManualClock } from '../../test/manual-clock.js';
import { AllocationLatency } from './metrics.js';

const START = Date.UTC(2026, 0, 1);

describe('the time from a claim to its addresses', () => {
  let clock: ManualClock;
  let measured: number[];
  let latency: AllocationLatency;

  beforeEach(() => {
    clock = new ManualClock(START);
    measured = [];
    latency = new AllocationLatency(clock, (seconds) => measured.push(seconds));
    latency.start();
  });

  function claim(more: { ageMs?: number; ips?: string[]; uid?: string } = {}): IPAMClaim {
    const { ageMs = 0, ips, uid = 'a' } = more;
    const creationTimestamp = new Date(clock.wall() - ageMs).toISOString();
    return {
      metadata: { name: 'vm1.blue', namespace: 'vms', uid, creationTimestamp },
      spec: { network: 'blue', interface: 'blue' },
      ...(ips && { status: { ips } }),
    };
  }

  /** @returns what is measured if the claim gets its addresses 2 s after it was seen */
  function allocate(seen: IPAMClaim): number[] {
    latency.onClaimChange({ type: 'added', object: seen });
    clock.advanceTo(clock.now() + 2_000);
    latency.onAllocated(seen);
    latency.onAllocated(seen);
    return measured;
  }

  it('counts from the moment that the watch shows the claim, once', () => {
    expect(allocate(claim({ ageMs: 900 }))).to.deep.equal([2]);
  });

  it('is not measured for a claim that a later list shows', () => {
    expect(allocate(claim({ ageMs: 10_001 }))).to.deep.equal([]);
  });

  it('is not measured for a claim that had addresses when it was created, as after a restore', () => {
    expect(allocate(claim({ ips: [] }))).to.deep.equal([]);
  });

  it('is not measured by a leader for claims that were created before its term', () => {
    latency.stop();
    const before = claim();
    latency.onClaimChange({ type: 'added', object: before });
    latency.start();
    latency.onAllocated(before);
    expect(measured).to.deep.equal([]);
  });

  it('is not measured across two terms of one leader', () => {
    const first = claim();
    latency.onClaimChange({ type: 'added', object: first });
    latency.stop();
    latency.start();
    latency.onAllocated(first);
    expect(measured).to.deep.equal([]);
  });

  it('forgets a claim that is deleted before it gets addresses', () => {
    const gone = claim();
    latency.onClaimChange({ type: 'added', object: gone });
    latency.onClaimChange({ type: 'removed', object: gone, before: gone });
    latency.onAllocated(gone);
    expect(measured).to.deep.equal([]);
  });
});
