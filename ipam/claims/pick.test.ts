import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { compiledPool, leaseOf } from '../../test/lease-objects.js';
import type { Family } from '../core/address.js';
import { parseCidr, rangesOf } from '../core/cidr.js';
import { compilePool } from '../core/pool.js';
import { RangeSet } from '../core/ranges.js';
import { LeaseBook } from '../leases/lease-book.js';
import { pick } from './pick.js';

const CLAIM: IPAMClaim = { metadata: { namespace: 'vms', name: 'c' }, spec: { network: 'blue', interface: '' } };
const OWNER = { kind: 'IPAMClaim' as const, namespace: 'vms', name: 'c', uid: 'c' };
const TERMS = { cooldownMs: 0, stickyMs: 0, now: 0 };

function refusalBehind(ahead: number, cidrs: readonly string[]): string | undefined {
  const spec = { network: 'blue', subnets: cidrs.map((cidr) => ({ cidr })) };
  const compiled = compilePool({ metadata: { name: 'blue', uid: 'blue' }, spec });
  if (!compiled.ok) throw new Error('the test has no pool');
  const { pool } = compiled;
  const market = { view: new LeaseBook().view(pool), terms: TERMS, waiters: { ahead: () => ahead } };
  const chosen = pick(CLAIM, pool, { addresses: [], families: pool.families, owner: OWNER }, market);
  return chosen.ok ? undefined : chosen.refusal.message;
}

/** A claim picks of a pool of two addresses, both in blocks. @returns the families of which blocks are wanted back */
function pressedBy(mac: string | undefined, keptFor: string): Family[] {
  const pool = compiledPool({ cidr: '10.0.0.0/30' });
  const book = new LeaseBook();
  book.preferUnlent(() => ({ 4: rangesOf([parseCidr('10.0.0.0/30')], 4), 6: RangeSet.EMPTY }));
  book.recordWrite(leaseOf('10.0.0.1', 1, { mac: keptFor, releasedAt: 0 }));
  const families: Family[] = [];
  const pressed = (family: Family) => families.push(family);
  const terms = { cooldownMs: 0, stickyMs: 60_000, retainsClaims: true, now: 1_000 };
  const wish = { addresses: [], families: pool.families, owner: OWNER, ...(mac !== undefined && { mac }) };
  const chosen = pick(CLAIM, pool, wish, { view: book.view(pool), terms, waiters: { ahead: () => 0 }, pressed });
  expect(chosen.ok && chosen.candidates.map(({ kind }) => kind)).to.deep.equal([mac === keptFor ? 'take' : 'create']);
  return families;
}

describe('picking addresses of blocks', () => {
  const mac = '02:00:00:00:00:01';

  it('wants blocks back', () => {
    expect(pressedBy(undefined, mac)).to.deep.equal([4]);
    expect(pressedBy('02:00:00:00:00:02', mac)).to.deep.equal([4]);
  });

  it('wants none back for what is kept for a MAC address, and is no loss to anybody', () => {
    expect(pressedBy(mac, mac)).to.deep.equal([]);
  });
});

describe('picking addresses behind older claims', () => {
  it('takes what they leave', () => {
    expect(refusalBehind(1, ['10.0.0.0/30'])).to.equal(undefined);
  });

  it('leaves them what is free, in words that begin as those of a pool that is full', () => {
    expect(refusalBehind(2, ['10.0.0.0/30'])).to.equal('pool blue is full: 2 older claims wait for what is free');
    expect(refusalBehind(2, ['10.0.0.0/30', 'fd00::/64'])).to.equal(
      'pool blue is full for IPv4: 2 older claims wait for what is free',
    );
  });
});
