import { expect } from 'chai';
import { AllocationReason } from '../../api/names.js';
import { compiledPool, leaseOf, leaseOwner } from '../../test/objects/lease-objects.js';
import { LeaseBook } from '../../ipam/leases/lease-book.js';
import { parseAddress } from '../address/address.js';
import { type AllocationRequest, findCandidates } from './allocator.js';
import type { Pool } from '../pool/pool.js';

const HOST = '02:00:00:00:00:99';
const TERMS = { now: Date.parse('2030-01-01T00:30:00Z'), cooldownMs: 60_000, stickyMs: 3_600_000 };
const POOL = compiledPool();

function ask(quarantined: readonly number[], wish: Partial<AllocationRequest> = {}, pool: Pool = POOL) {
  const book = new LeaseBook([pool]);
  for (const last of quarantined) {
    book.recordWrite(leaseOf(`10.0.0.${last}`, 100 + last, { uid: `u${last}`, takenBy: HOST }));
  }
  const request = { owner: leaseOwner('new'), families: [4 as const], addresses: [], ...wish };
  return findCandidates(pool, request, book.view(pool), TERMS);
}

describe('findCandidates with quarantined addresses', () => {
  it('picks a free address', () => {
    const candidate = { kind: 'create', address: parseAddress('10.0.0.4') };
    expect(ask([1, 3])).to.deep.equal({ ok: true, candidates: [candidate] });
  });

  it('picks none for the MAC address that has it', () => {
    const answer = ask([1, 2, 3, 4, 5, 6], { mac: HOST });
    expect(answer.ok).to.equal(false);
  });

  it('refuses a request for one, and names the MAC address that has it', () => {
    const address = parseAddress('10.0.0.1');
    const message = `10.0.0.1 is quarantined by AddressLease blue.10-0-0-1, because MAC address ${HOST} has it: remove that host, or request another address`;
    const refusal = { reason: AllocationReason.Conflict, message, address, isQuarantined: true };
    expect(ask([1], { addresses: [address] })).to.deep.equal({ ok: false, refusal });
  });

  it('counts them apart if the pool is full', () => {
    const answer = ask([1, 2, 3, 4, 5, 6]);
    expect(!answer.ok && answer.refusal.message).to.match(
      /^pool blue is full: 0 of 6 leased, 6 quarantined, because other hosts have them\. /,
    );
  });

  it('does not count those that the pool no longer allocates', () => {
    const narrow = compiledPool({ subnets: [{ cidr: '10.0.0.0/29', ranges: ['10.0.0.1'] }] });
    const answer = ask([1, 2, 3], {}, narrow);
    expect(!answer.ok && answer.refusal.message).to.match(/^pool blue is full: 0 of 1 leased, 1 quarantined, /);
  });
});
