import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { compiledPool, leaseOf } from '../../test/objects/lease-objects.js';
import type { Family } from '../../addressing/address/address.js';
import { parseCidr, rangesOf } from '../../addressing/address/cidr.js';
import { compilePool } from '../../addressing/pool/pool.js';
import { RangeSet } from '../../addressing/address/ranges.js';
import { LeaseBook } from '../leases/lease-book.js';
import { pick } from './pick.js';

const CLAIM: IPAMClaim = { metadata: { namespace: 'vms', name: 'c' }, spec: { network: 'blue', interface: '' } };
const OWNER = { kind: 'IPAMClaim' as const, namespace: 'vms', name: 'c', uid: 'c' };
const TERMS = { cooldownMs: 0, stickyMs: 0, now: 0 };

function refusalBehind(olderClaims: number, cidrs: readonly string[]): string | undefined {
  const spec = { network: 'blue', subnets: cidrs.map((cidr) => ({ cidr })) };
  const compiled = compilePool({ metadata: { name: 'blue', uid: 'blue' }, spec });
  if (!compiled.ok) throw new Error('the test has no pool');
  const { pool } = compiled;
  const input = {
    view: new LeaseBook().view(pool),
    terms: TERMS,
    claims: new Map(),
    waitList: { countOlder: () => olderClaims },
  };
  const chosen = pick(CLAIM, pool, { addresses: [], families: pool.families, owner: OWNER }, input);
  return chosen.ok ? undefined : chosen.refusal.message;
}

/**
 * Picks for a claim from a pool of two addresses, both in blocks.
 * @returns the families with a shortage
 */
function shortagesOf(mac: string | undefined, keptFor: string): Family[] {
  const pool = compiledPool({ cidr: '10.0.0.0/30' });
  const book = new LeaseBook();
  book.preferUnlent(() => ({ 4: rangesOf([parseCidr('10.0.0.0/30')], 4), 6: RangeSet.EMPTY }));
  book.recordWrite(leaseOf('10.0.0.1', 1, { mac: keptFor, releasedAt: 0 }));
  const families: Family[] = [];
  const noteShortage = (family: Family) => families.push(family);
  const terms = { cooldownMs: 0, stickyMs: 60_000, isStickyForClaims: true, now: 1_000 };
  const request = { addresses: [], families: pool.families, owner: OWNER, ...(mac !== undefined && { mac }) };
  const chosen = pick(CLAIM, pool, request, {
    view: book.view(pool),
    terms,
    claims: new Map(),
    waitList: { countOlder: () => 0 },
    noteShortage,
  });
  expect(chosen.ok && chosen.candidates.map(({ kind }) => kind)).to.deep.equal([mac === keptFor ? 'take' : 'create']);
  return families;
}

describe('picking an address from a block', () => {
  const mac = '02:00:00:00:00:01';

  it('reports a shortage, so that blocks are reclaimed', () => {
    expect(shortagesOf(undefined, mac)).to.deep.equal([4]);
    expect(shortagesOf('02:00:00:00:00:02', mac)).to.deep.equal([4]);
  });

  it("reports no shortage if the address is sticky for the claim's MAC address", () => {
    expect(shortagesOf(mac, mac)).to.deep.equal([]);
  });
});

describe('picking addresses while older claims wait', () => {
  it('takes an address if enough are free for the older claims', () => {
    expect(refusalBehind(1, ['10.0.0.0/30'])).to.equal(undefined);
  });

  it('leaves the free addresses to older claims, with a message that begins like that of a full pool', () => {
    expect(refusalBehind(2, ['10.0.0.0/30'])).to.equal(
      'pool blue is full: its last free addresses are for 2 older claims',
    );
    expect(refusalBehind(2, ['10.0.0.0/30', 'fd00::/64'])).to.equal(
      'pool blue is full for IPv4: its last free addresses are for 2 older claims',
    );
  });
});
