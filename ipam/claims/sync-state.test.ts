import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { ClaimSyncState } from './sync-state.js';

const CLAIM: IPAMClaim = { metadata: { name: 'vm.data', uid: 'a' }, spec: { network: 'blue', interface: 'pod1' } };
const [first, second] = [{ name: 'first' }, { name: 'second' }] as unknown as [LeaseRecord, LeaseRecord];

describe('the state of a sync', () => {
  it('does not count a claim as read live once it has a lease that appeared after the read', () => {
    const state = new ClaimSyncState(CLAIM);
    state.beforeRead({ ofExactClaim: ({ metadata: { uid } }) => (uid === 'a' ? [first] : []) });
    state.onClaimRead(CLAIM, []);
    state.onLeasesObserved([first]);
    expect(state.findings.isLive).to.equal(true);
    state.onLeasesObserved([first, second]);
    expect(state.findings.isLive).to.equal(false);
  });

  it('counts only other claims that had leases before the read as gone', () => {
    const state = new ClaimSyncState(undefined);
    state.onClaimRead(CLAIM, ['a', 'earlier']);
    expect([...state.gone]).to.deep.equal(['earlier']);
  });
});
