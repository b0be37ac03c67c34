import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { compilePool } from '../core/pool.js';
import { LeaseBook } from '../leases/book.js';
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
