import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { Cache } from '../../kube/cache.js';
import { lease } from './testing/claim-observation.js';
import { claimOf, day } from '../../test/pool-objects.js';
import { SERVED_CLAIM_INDEXES } from './indexes.js';
import { allClaimKeys, keysOfClaim, keysOfLease, keysOfNetworks } from './triggers.js';

function claim(name: string, born: number, network = 'blue'): IPAMClaim {
  const made = claimOf(`vms/${name}`, undefined, network);
  return { ...made, metadata: { ...made.metadata, creationTimestamp: day(born) } };
}

describe('what a change wakes', () => {
  const nobody = { concerned: () => ['vms/waiting'] };
  const held = lease('10.0.0.5');
  const released = { ...held, releasedAt: 1 };
  const cache = new Cache<IPAMClaim>(SERVED_CLAIM_INDEXES);
  for (const each of [claim('young', 3), claim('old', 1), claim('green', 2, 'green')]) cache.set(each);

  it('is the claim itself', () => {
    expect(keysOfClaim({ object: claim('a', 1) })).to.deep.equal(['vms/a']);
  });

  it('is the claim whose lease it is', () => {
    expect(keysOfLease({ after: held }, nobody)).to.deep.equal(['vms/vm1.data']);
  });

  it('is also those who wait where a lease is released, goes, or is given back', () => {
    expect(keysOfLease({ before: held, after: released }, nobody)).to.deep.equal(['vms/vm1.data', 'vms/waiting']);
    expect(keysOfLease({ before: released }, nobody)).to.deep.equal(['vms/vm1.data', 'vms/waiting']);
  });

  it('is the former and the new owner of a lease that is taken', () => {
    const owner = { kind: 'IPAMClaim' as const, namespace: 'vms', name: 'next', uid: 'n' };
    expect(keysOfLease({ before: released, after: { ...held, owner } }, nobody)).to.deep.equal([
      'vms/vm1.data',
      'vms/next',
    ]);
  });

  it('is no claim where the lease is a pod’s', () => {
    const owner = { kind: 'Pod' as const, namespace: 'vms', name: 'p', uid: 'p' };
    expect(keysOfLease({ after: { ...held, owner } }, nobody)).to.deep.equal([]);
  });

  it('is the claims of the networks whose pools change, oldest first', () => {
    expect(keysOfNetworks(new Set(['blue']), cache)).to.deep.equal(['vms/old', 'vms/young']);
    expect(keysOfNetworks(new Set(['red']), cache)).to.deep.equal([]);
  });

  it('is everything when a process begins to lead: claims, oldest first, and what claims have left', () => {
    const left = { all: () => [held, lease('10.0.0.6')] };
    expect(allClaimKeys(cache, left)).to.deep.equal(['vms/old', 'vms/green', 'vms/young', 'vms/vm1.data']);
  });

  it('begins with those that show addresses: nothing else may keep these from others', () => {
    const restored = { ...claim('restored', 9), status: { ips: ['10.0.0.5/24'] } };
    const odd = { ...claim('odd', 4), status: {} as never };
    const claims = { list: () => [...cache.list(), odd, restored] };
    const keys = ['vms/restored', 'vms/old', 'vms/green', 'vms/young', 'vms/odd'];
    expect(allClaimKeys(claims, { all: () => [] })).to.deep.equal(keys);
  });
});
