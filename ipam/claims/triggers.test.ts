import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { Cache } from '../../kube/informers/cache.js';
import { lease } from './testing/claim-observation.js';
import { claimOf, day } from '../../test/objects/pool-objects.js';
import { SERVED_CLAIM_INDEXES } from './claim-transform.js';
import { allClaimKeys, claimKeyOf, keysOfLease, keysOfNetworks } from './triggers.js';

function claim(name: string, born: number, network = 'blue'): IPAMClaim {
  const made = claimOf(`vms/${name}`, undefined, network);
  return { ...made, metadata: { ...made.metadata, creationTimestamp: day(born) } };
}

describe('the claims that a change wakes', () => {
  const waitList = { claimsToWake: () => ['vms/waiting'] };
  const held = lease('10.0.0.5');
  const released = { ...held, releasedAt: 1 };
  const cache = new Cache<IPAMClaim>(SERVED_CLAIM_INDEXES);
  for (const each of [claim('young', 3), claim('old', 1), claim('green', 2, 'green')]) cache.set(each);

  it('include the changed claim', () => {
    expect(claimKeyOf({ object: claim('a', 1) })).to.deep.equal(['vms/a']);
  });

  it('include the owner of a changed lease', () => {
    expect(keysOfLease({ after: held }, waitList)).to.deep.equal(['vms/vm1.data']);
  });

  it('include waiting claims if a lease is released, deleted or returned', () => {
    expect(keysOfLease({ before: held, after: released }, waitList)).to.deep.equal(['vms/vm1.data', 'vms/waiting']);
    expect(keysOfLease({ before: released }, waitList)).to.deep.equal(['vms/vm1.data', 'vms/waiting']);
  });

  it('include the former and the new owner of a lease', () => {
    const owner = { kind: 'IPAMClaim' as const, namespace: 'vms', name: 'next', uid: 'n' };
    const keys = keysOfLease({ before: released, after: { ...held, owner } }, waitList);
    expect(keys).to.deep.equal(['vms/vm1.data', 'vms/next']);
  });

  it("do not include any if the lease is a pod's", () => {
    const owner = { kind: 'Pod' as const, namespace: 'vms', name: 'p', uid: 'p' };
    expect(keysOfLease({ after: { ...held, owner } }, waitList)).to.deep.equal([]);
  });

  it('include those of the networks whose pools change, oldest first', () => {
    expect([...keysOfNetworks(new Map([['blue', undefined]]), cache)]).to.deep.equal(['vms/old', 'vms/young']);
    expect([...keysOfNetworks(new Map([['red', undefined]]), cache)]).to.deep.equal([]);
  });

  it('are sorted one namespace at a time, between which other work can run', () => {
    const sorted = new Set<string>();
    const claimsOf = (namespace: string) =>
      ['young', 'old'].map((name) => {
        const { metadata, ...rest } = claimOf(`${namespace}/${name}`);
        const creationTimestamp = () => (sorted.add(namespace), name);
        return { ...rest, metadata: Object.defineProperty(metadata, 'creationTimestamp', { get: creationTimestamp }) };
      });
    const claims = { byIndex: () => [...claimsOf('a'), ...claimsOf('b')] };
    const [first] = keysOfNetworks(new Map([['blue', undefined]]), claims);
    expect([first, ...sorted]).to.deep.equal(['a/old', 'a']);
  });

  it('are all when a process becomes the leader, oldest first, with deleted claims that have leases last', () => {
    const left = { all: () => [held, lease('10.0.0.6')] };
    const keys = ['vms/old', 'vms/green', 'vms/young', 'vms/vm1.data', 'vms/vm1.data'];
    expect([...allClaimKeys(cache, left)]).to.deep.equal(keys);
  });

  it('begin with claims that show no addresses, in all namespaces', () => {
    const restored = { ...claim('restored', 9), status: { ips: ['10.0.0.5/24'] } };
    const odd = { ...claim('odd', 4), status: {} as never };
    const claims = { list: () => [...cache.list(), odd, restored] };
    const keys = ['vms/old', 'vms/green', 'vms/young', 'vms/odd', 'vms/restored'];
    expect([...allClaimKeys(claims, { all: () => [] })]).to.deep.equal(keys);
  });
});
