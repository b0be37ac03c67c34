import { expect } from 'chai';
import { compiledPool, leaseOf, leaseOwner, requestFor } from '../../test/objects/lease-objects.js';
import { LeaseBook } from '../../ipam/leases/lease-book.js';
import { parseAddress } from '../address/address.js';
import { findCandidates } from '../allocator/allocator.js';
import { withCoolingStart } from './cooling-start.js';
import { lockForNetworkData, unlockFromNetworkData } from './lease-network-data.js';
import { type LeaseRecord, availabilityOf, expiresAt, mayExpire, readLease } from './lease.js';
import { notYetMessage } from '../allocator/refusal-messages.js';

const TIMES = { cooldownMs: 60_000, stickyMs: 600_000, isStickyForClaims: true };
const MAC = '02:00:00:00:00:01';
const RELEASED = Date.UTC(2026, 0, 1);
const MONTH_MS = 30 * 86_400_000;
const LOCK = { namespace: 'a', secret: 'net', owner: { kind: 'VirtualMachine' as const, name: 'c1', uid: 'vm-c1' } };

function released(isLocked: boolean): LeaseRecord {
  const { metadata, spec } = leaseOf('10.0.0.2', 1);
  const locked = isLocked ? { networkData: LOCK } : {};
  return readLease({ metadata, spec: { ...spec, releasedAt: new Date(RELEASED).toISOString(), ...locked } });
}

describe('an address that a Secret with network data may hold', () => {
  it('is not given to another owner, and its lease does not expire, however long ago it was released', () => {
    const lease = released(true);
    const now = RELEASED + MONTH_MS;
    const until = { until: Infinity };
    expect(availabilityOf(lease, requestFor('10.0.0.2', 'c2'), TIMES, now)).to.deep.equal(until);
    const sticky = { ...lease, mac: MAC };
    const returning = { ...requestFor('10.0.0.2', 'c2'), mac: MAC };
    expect(availabilityOf(sticky, returning, TIMES, now)).to.deep.equal(until);
    const otherPool = { ...requestFor('10.0.0.2', 'c2'), pool: 'red' };
    expect(availabilityOf(lease, otherPool, TIMES, now)).to.deep.equal(until);
    expect(mayExpire(lease, TIMES, now)).to.equal(false);
    expect(notYetMessage(lease, Infinity, TIMES)).to.equal(
      '10.0.0.2 is kept until the process guest has removed it from the network data of its last VM',
    );
  });

  it('is given to the next claim of the same VM', () => {
    const owner = { ...leaseOwner('c1'), uid: 'next' };
    expect(availabilityOf(released(true), { ...requestFor('10.0.0.2'), owner }, TIMES, RELEASED)).to.equal(true);
  });

  it('cools down from the time at which it is unlocked', () => {
    const known = withCoolingStart(released(true), { known: undefined, hasSynced: false, now: RELEASED + MONTH_MS });
    const now = RELEASED + MONTH_MS + 5;
    const unlocked = withCoolingStart(released(false), { known, hasSynced: true, now });
    expect(expiresAt(unlocked, { cooldownMs: 60_000, stickyMs: 0 })).to.equal(now + 60_000);
  });

  function refusal(wanted: { mac?: string; addresses?: string[] }, ranges: string): string | undefined {
    const pool = compiledPool({ subnets: [{ cidr: '10.0.0.0/29', ranges: [ranges] }] });
    const book = new LeaseBook([pool]);
    const { metadata, spec } = leaseOf('10.0.0.2', 1);
    const releasedAt = new Date(RELEASED).toISOString();
    book.recordWrite({ metadata, spec: { ...spec, releasedAt, mac: MAC, networkData: LOCK } });
    const { addresses = [], ...rest } = wanted;
    const asked = { owner: leaseOwner('c2'), families: [4 as const], addresses: addresses.map(parseAddress), ...rest };
    const answer = findCandidates(pool, asked, book.view(pool), { ...TIMES, now: RELEASED + MONTH_MS });
    return answer.ok ? undefined : answer.refusal.message;
  }

  it('is waited for by a VM that requests it or has its MAC address, and the refusal says for what', () => {
    const wanted = '10.0.0.2 is kept until the process guest has removed it from the network data of its last VM';
    expect(refusal({ addresses: ['10.0.0.2'] }, '10.0.0.2-10.0.0.4')).to.include(wanted);
    expect(refusal({ mac: MAC }, '10.0.0.2-10.0.0.4')).to.include(wanted);
    expect(refusal({}, '10.0.0.2-10.0.0.4')).to.equal(undefined);
  });

  it('is named as the cause if the pool has no other address', () => {
    const wanted = '. Released addresses wait until the process guest has removed them from network data. Delete VMs';
    expect(refusal({}, '10.0.0.2-10.0.0.2')).to.include(wanted);
  });

  it('is locked and unlocked with preconditions, and locked only while it is held', () => {
    const held = readLease(leaseOf('10.0.0.2', 7));
    const metadata = { uid: 'u1', resourceVersion: '7' };
    expect(lockForNetworkData(held, LOCK).body).to.deep.equal({ metadata, spec: { networkData: LOCK } });
    expect(unlockFromNetworkData(held).body).to.deep.equal({ metadata, spec: { networkData: null } });
    expect(() => lockForNetworkData(released(false), LOCK)).to.throw('is released');
  });
});
