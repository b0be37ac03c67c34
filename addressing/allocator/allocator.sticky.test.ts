import { expect } from 'chai';
import { type LeaseOptions, compiledPool, leaseOf, leaseOwner } from '../../test/objects/lease-objects.js';
import { LeaseBook } from '../../ipam/leases/lease-book.js';
import { formatAddress, parseAddress } from '../address/address.js';
import { type AllocationContext, addressOf, findCandidates } from './allocator.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const MAC = '02:00:00:00:00:ab';
const TERMS: AllocationContext = { now: NOW, cooldownMs: 60_000, stickyMs: 3_600_000, isStickyForClaims: true };
const POOL = compiledPool({ subnets: [{ cidr: '10.0.0.0/29' }] });

/** What a claim of namespace `a` with the MAC address is given. @param leases by the last part of the address */
function given(leases: Record<string, LeaseOptions>, hold: string[] = []): string {
  const book = new LeaseBook([POOL]);
  for (const [last, more] of Object.entries(leases)) {
    book.recordWrite(leaseOf(`10.0.0.${last}`, 100, { uid: `u${last}`, name: `c${last}`, mac: MAC, ...more }));
  }
  for (const last of hold) book.markPending('blue', parseAddress(`10.0.0.${last}`));
  const wish = { addresses: [], families: [4] as const, owner: leaseOwner('new'), mac: MAC };
  const chosen = findCandidates(POOL, wish, book.view(POOL), TERMS);
  if (!chosen.ok) return chosen.refusal.message;
  return chosen.candidates.map((choice) => formatAddress(addressOf(choice))).join();
}

const released = (secondsAgo: number, more: LeaseOptions = {}) => ({ releasedAt: NOW - secondsAgo * 1000, ...more });

describe('findCandidates with several sticky addresses of one MAC address', () => {
  it('prefers the address of its namespace, even if another namespace used the MAC address later', () => {
    expect(given({ 3: released(120), 5: released(70, { namespace: 'b' }) })).to.equal('10.0.0.3');
  });

  it('prefers the address of its namespace while one of another namespace cools down', () => {
    expect(given({ 3: released(120), 5: released(10, { namespace: 'b' }) })).to.equal('10.0.0.3');
  });

  it('prefers the address of the owner’s name, then the one released last', () => {
    expect(given({ 3: released(120, { name: 'new' }), 5: released(70) })).to.equal('10.0.0.3');
    expect(given({ 3: released(120), 5: released(70) })).to.equal('10.0.0.5');
  });

  it('chooses the next address if a write for the first one is pending', () => {
    expect(given({ 3: released(120), 5: released(70) }, ['5'])).to.equal('10.0.0.3');
  });
});

describe('findCandidates for a MAC address with a reservation', () => {
  const held = (by: string, more: LeaseOptions = {}): Record<string, LeaseOptions> => ({
    5: { name: by, namespace: 'b', reserved: true, ...more },
  });

  it('waits while another owner holds the address, and names only the lease if the owner is in another namespace', () => {
    expect(given(held('other'))).to.equal(
      `10.0.0.5 is allocated to an owner in another namespace (AddressLease blue.10-0-0-5), and is reserved for MAC address ${MAC}`,
    );
  });

  it('waits while a write of another owner is pending', () => {
    expect(given(held('other', { releasedAt: 0 }), ['5'])).to.equal(
      `10.0.0.5 is being allocated to another owner, and is reserved for MAC address ${MAC}`,
    );
  });

  it('does not wait if the owner holds the address itself', () => {
    expect(given(held('new', { namespace: 'a' }))).to.equal('10.0.0.6');
  });
});
