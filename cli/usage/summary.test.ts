import { expect } from 'chai';
import { compiledPool, leaseOf } from '../../test/objects/lease-objects.js';
import { adminPool, claimOf } from '../../test/objects/pool-objects.js';
import { blockRecord } from '../../test/objects/block-objects.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { readLease } from '../../addressing/lease/lease.js';
import { addressMapOf, formatRange } from './address-map.js';
import { SpaceLeases, countFamily, largestFreeRange, topNamespaces, waitingClaims } from './summary.js';

const lease = (address: string, options: Parameters<typeof leaseOf>[2] = {}) => readLease(leaseOf(address, 1, options));

function waiting(claim: IPAMClaim, reason = 'SubnetExhausted', created = '2026-01-01T00:00:00Z'): IPAMClaim {
  const condition = { type: 'IPsAllocated', status: 'False' as const, reason, message: '', lastTransitionTime: '' };
  const metadata = { ...claim.metadata, creationTimestamp: created };
  return { ...claim, metadata, status: { ips: [], conditions: [condition] } };
}

describe('the summary of a pool', () => {
  const pool = compiledPool({ subnets: [{ cidr: '10.0.0.0/28' }, { cidr: '2001:db8::/124' }] });
  const leases = [lease('10.0.0.4'), lease('10.0.0.5', { releasedAt: 1 }), lease('2001:db8::1')];
  const map = addressMapOf(pool, { leases }, 2);

  it('counts the addresses of each family', () => {
    const ofSpace = new SpaceLeases(leases);
    expect(countFamily(pool, 4, ofSpace, 2)).to.include({ allocated: 1n, cooling: 1n, free: 12n, excluded: 2n });
    expect(countFamily(pool, 6, ofSpace, 2)).to.include({ allocated: 1n, cooling: 0n, free: 14n, excluded: 1n });
  });

  it('has the largest range of free addresses of a family', () => {
    expect(formatRange(largestFreeRange(map, 4)!, 4)).to.equal('10.0.0.6-10.0.0.14');
    expect(formatRange(largestFreeRange(map, 6)!, 6)).to.equal('2001:db8::2-2001:db8::f');
  });

  it('has the largest range of free addresses across the borders of blocks', () => {
    const lent = compiledPool({ cidr: '10.0.0.0/28', blockSize: { ipv4: 30 } });
    const blocks = [blockRecord('10.0.0.4/30', 1), blockRecord('10.0.0.8/30', 1, { node: 'n2' })];
    const { subnets, ...rest } = addressMapOf(lent, { leases: [], blocks }, 0);
    expect(formatRange(largestFreeRange({ subnets, ...rest }, 4)!, 4)).to.equal('10.0.0.1-10.0.0.14');
  });

  it('has no range of free addresses for a family that is full or absent', () => {
    const full = compiledPool({ cidr: '10.0.0.0/31' });
    const both = [lease('10.0.0.0'), lease('10.0.0.1')];
    expect(largestFreeRange(addressMapOf(full, { leases: both }, 0), 4)).to.equal(undefined);
    expect(largestFreeRange(map, 6)).not.to.equal(undefined);
    expect(largestFreeRange(addressMapOf(full, { leases: [] }, 0), 6)).to.equal(undefined);
  });

  it('counts the held addresses of each namespace, those with most first', () => {
    const all = [
      lease('10.0.0.1', { namespace: 'b' }),
      lease('10.0.0.2', { namespace: 'a' }),
      lease('10.0.0.3', { namespace: 'c' }),
      lease('10.0.0.4', { namespace: 'b' }),
      lease('10.0.0.5', { namespace: 'd', releasedAt: 1 }),
    ];
    expect(topNamespaces(all, 'blue')).to.deep.equal([
      { namespace: 'b', allocated: 2 },
      { namespace: 'a', allocated: 1 },
      { namespace: 'c', allocated: 1 },
    ]);
    expect(topNamespaces(all, 'red')).to.deep.equal([]);
  });

  it('lists the claims that wait because the pool is full, oldest first', () => {
    const claims = [
      waiting(claimOf('a/young'), 'SubnetExhausted', '2026-01-02T00:00:00Z'),
      waiting(claimOf('a/old')),
      waiting(claimOf('a/conflict'), 'IPAddressConflict'),
      waiting(claimOf('a/red', undefined, 'red')),
      claimOf('a/new'),
      waiting(claimOf('z/elsewhere')),
    ];
    const names = (found: IPAMClaim[]) => found.map(({ metadata }) => metadata.name);
    expect(names(waitingClaims(adminPool('blue', { namespaces: ['a'] }), claims))).to.deep.equal(['old', 'young']);
    expect(names(waitingClaims(adminPool('blue'), claims))).to.deep.equal(['elsewhere', 'old', 'young']);
  });

  it('lists as waiting for a derived pool the claims of NADs of its namespace', () => {
    const claims = [
      waiting(claimOf('a/own')),
      waiting(claimOf('b/through-global', 'a/blue')),
      waiting(claimOf('a/through-other', 'b/blue')),
    ];
    const found = waitingClaims(adminPool('blue.a', { nadNamespace: 'a' }), claims);
    expect(found.map(({ metadata }) => metadata.name)).to.deep.equal(['own', 'through-global']);
  });
});
