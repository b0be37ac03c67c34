import { expect } from 'chai';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { Condition } from '../api/meta.js';
import { conditionsAfter, conditionsPatch, hasConditions } from './claim-conditions.js';

const NOW = Date.UTC(2026, 0, 2);
const value = { status: 'True', reason: 'Configured', message: 'all is well' } as const;
const foreign: Condition = { ...value, type: 'IPsAllocated', lastTransitionTime: '2026-01-01T00:00:00Z' };
const own: Condition = { ...value, type: 'GuestConfigured', lastTransitionTime: '2026-01-01T00:00:00Z' };

function claimWith(conditions: Condition[]): IPAMClaim {
  const metadata = { name: 'c', namespace: 'vms', uid: 'u', resourceVersion: '7', generation: 3 };
  return { metadata, spec: { network: 'blue', interface: 'net1' }, status: { ips: [], conditions } };
}

describe('the conditions of a claim', () => {
  it('of other writers stay', () => {
    expect(conditionsAfter(claimWith([foreign, own]), { GuestConfigured: undefined }, NOW)).to.deep.equal([foreign]);
    expect(conditionsAfter(claimWith([own, foreign]), { GuestConfigured: value }, NOW)).to.deep.equal([foreign, own]);
  });

  it('keep the time of their transition while the status stays', () => {
    const message = 'another one';
    const [changed] = conditionsAfter(claimWith([own]), { GuestConfigured: { ...value, message } }, NOW);
    expect(changed).to.deep.equal({ ...own, message, observedGeneration: 3 });
    const [flipped] = conditionsAfter(claimWith([own]), { GuestConfigured: { ...value, status: 'False' } }, NOW);
    expect(flipped).to.include({ status: 'False', lastTransitionTime: '2026-01-02T00:00:00Z' });
  });

  it('are as desired only with equal status, reason and message, and without those that must be absent', () => {
    const claim = claimWith([foreign, own]);
    expect(hasConditions(claim, { GuestConfigured: value, GuestServed: undefined })).to.equal(true);
    expect(hasConditions(claim, { GuestConfigured: { ...value, message: '' } })).to.equal(false);
    expect(hasConditions(claim, { GuestConfigured: undefined })).to.equal(false);
    expect(hasConditions(claim, { GuestServed: value })).to.equal(false);
  });

  it('are patched alone, with the version of the claim', () => {
    expect(conditionsPatch(claimWith([foreign]), { GuestConfigured: undefined }, NOW)).to.deep.equal({
      metadata: { uid: 'u', resourceVersion: '7' },
      status: { conditions: [foreign] },
    });
  });
});
