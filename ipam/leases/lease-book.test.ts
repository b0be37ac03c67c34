import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import { compiledPool as pool, leaseOf as lease } from '../../test/objects/lease-objects.js';
import { type Family, formatAddress, parseAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { LeaseBook } from './lease-book.js';

const NOW = Date.UTC(2026, 0, 1);
const TIMES = { cooldownMs: 60_000, stickyMs: 0 };
const STICKY = { ...TIMES, stickyMs: 3_600_000, isStickyForClaims: true };

type Tell = Parameters<Parameters<LeaseBook['attach']>[0]['onChange']>[0];

/** A book, and the watch that it follows. */
function follow(book = new LeaseBook([pool()]), clock = { now: () => Infinity }): { book: LeaseBook; tell: Tell } {
  let tell: Tell = () => undefined;
  book.attach({ hasSynced: false, onChange: (handler) => void (tell = handler) }, clock);
  return { book, tell: (change) => tell(change) };
}

const added = (object: AddressLease) => ({ type: 'added' as const, object: readLease(object) });
const changed = (object: AddressLease) => ({ type: 'changed' as const, object: readLease(object) });
const removed = (object: AddressLease) => ({ type: 'removed' as const, object: readLease(object) });
const [NAME, ADDRESS] = ['blue.10-0-0-5', parseAddress('10.0.0.5')] as const;

describe('LeaseBook', () => {
  describe('with late answers and events', () => {
    it('shows its own write at once, and ignores older events', () => {
      const { book, tell } = follow();
      tell(added(lease('10.0.0.5', 99)));
      book.recordWrite(lease('10.0.0.5', 101, { releasedAt: NOW }));
      tell(changed(lease('10.0.0.5', 100)));
      expect(book.get(NAME)?.releasedAt).to.equal(NOW);
      tell(changed(lease('10.0.0.5', 102)));
      expect(book.get(NAME)?.releasedAt).to.equal(undefined);
    });

    it('shows the later of two leases of one name, even if the deletion of the earlier one arrives late', () => {
      const { book, tell } = follow();
      tell(added(lease('10.0.0.5', 99)));
      book.recordWrite(lease('10.0.0.5', 110, { uid: 'u2' }));
      tell(removed(lease('10.0.0.5', 99)));
      expect(book.get(NAME)?.metadata.uid).to.equal('u2');
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(true);
    });

    it('forgets a lease that it deleted before the watch shows it', () => {
      const { book, tell } = follow();
      tell(added(lease('10.0.0.5', 99)));
      book.forget(NAME, 'u1');
      tell(changed(lease('10.0.0.5', 100)));
      expect(book.get(NAME)).to.equal(undefined);
      tell(removed(lease('10.0.0.5', 100)));
      tell(added(lease('10.0.0.5', 105, { uid: 'u2' })));
      expect(book.get(NAME)?.metadata.uid).to.equal('u2');
    });

    it('ignores events of an earlier lease after a later one of its name was deleted', () => {
      const { book, tell } = follow();
      book.recordWrite(lease('10.0.0.5', 110, { uid: 'u2' }));
      book.forget(NAME, 'u2');
      tell(added(lease('10.0.0.5', 99)));
      tell(removed(lease('10.0.0.5', 99)));
      tell(added(lease('10.0.0.5', 110, { uid: 'u2' })));
      expect(book.get(NAME)).to.equal(undefined);
    });

    it('keeps a deleted lease while it has a finalizer', () => {
      const { book, tell } = follow();
      tell(added(lease('10.0.0.5', 99)));
      book.forget(NAME, 'u1');
      const kept = lease('10.0.0.5', 100);
      tell(changed({ ...kept, metadata: { ...kept.metadata, deletionTimestamp: '2026-01-01T00:00:01Z' } }));
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(true);
    });

    it('ignores the late answer to the creation of a lease that was deleted', () => {
      const { book, tell } = follow();
      tell(added(lease('10.0.0.5', 99)));
      tell(removed(lease('10.0.0.5', 99)));
      book.recordWrite(lease('10.0.0.5', 99));
      expect(book.get(NAME)).to.equal(undefined);
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(false);
    });

    it('lists its own leases that the watch has never shown', () => {
      const { book, tell } = follow();
      book.recordWrite(lease('10.0.0.5', 99));
      book.recordWrite(lease('10.0.0.6', 100, { uid: 'u2' }));
      tell(added(lease('10.0.0.6', 100, { uid: 'u2' })));
      expect(book.unseen().map(({ metadata }) => metadata.name)).to.deep.equal([NAME]);
      book.forget(NAME, 'u1');
      expect(book.unseen()).to.deep.equal([]);
    });
  });

  it('reports changes, and a new lease of an old name as two changes', () => {
    const { book, tell } = follow();
    const seen: [number | undefined, number | undefined][] = [];
    const version = (record?: LeaseRecord) => record && Number(record.metadata.resourceVersion);
    book.onChange(({ before, after }) => seen.push([version(before), version(after)]));
    tell(added(lease('10.0.0.5', 99)));
    book.recordWrite(lease('10.0.0.5', 101));
    tell(changed(lease('10.0.0.5', 101)));
    tell(added(lease('10.0.0.5', 105, { uid: 'u2' })));
    book.forget(NAME, 'u2');
    expect(seen).to.deep.equal([
      [undefined, 99],
      [99, 101],
      [101, undefined],
      [undefined, 105],
      [105, undefined],
    ]);
  });

  it('counts a cool-down by its own clock from when it saw the release, and not anew after a list', () => {
    let now = NOW;
    const { book, tell } = follow(undefined, { now: () => now });
    const view = () => book.view(pool()).cooling(4, TIMES).first?.cooledAt;
    book.recordWrite(lease('10.0.0.5', 99));
    tell(changed(lease('10.0.0.5', 100, { releasedAt: NOW - 300_000 })));
    now += 30_000;
    tell(changed(lease('10.0.0.5', 101, { releasedAt: NOW - 300_000 })));
    expect(view()).to.equal(NOW + 60_000);
    tell(changed(lease('10.0.0.5', 102)));
    book.recordWrite(lease('10.0.0.5', 103, { releasedAt: NOW - 200_000 }));
    expect(view()).to.equal(NOW + 90_000);
  });

  describe('markPending', () => {
    it('occupies the address, and succeeds only once', () => {
      const book = new LeaseBook([pool()]);
      expect(book.markPending('blue', ADDRESS)).to.equal(true);
      expect(book.markPending('blue', ADDRESS)).to.equal(false);
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(true);
      expect(book.view(pool()).isPending(ADDRESS)).to.equal(true);
    });

    it('leaves the address occupied if a lease was created', () => {
      const { book } = follow();
      const given: string[] = [];
      book.onAddressFreed((space) => given.push(space));
      book.markPending('blue', ADDRESS);
      book.recordWrite(lease('10.0.0.5', 99));
      book.clearPending('blue', ADDRESS);
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(true);
      expect(given).to.deep.equal([]);
    });

    it('frees the address and reports it if no lease was created', () => {
      const { book } = follow();
      const given: string[] = [];
      book.onAddressFreed((space, { value }) => given.push(`${space} ${value}`));
      book.markPending('blue', ADDRESS);
      book.clearPending('blue', ADDRESS);
      book.clearPending('blue', ADDRESS);
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(false);
      expect(given).to.deep.equal([`blue ${ADDRESS.value}`]);
    });

    it('keeps the address occupied when its earlier lease is deleted', () => {
      const { book, tell } = follow();
      tell(added(lease('10.0.0.5', 99, { releasedAt: NOW })));
      book.markPending('blue', ADDRESS);
      tell(removed(lease('10.0.0.5', 99)));
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(true);
      book.clearPending('blue', ADDRESS);
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(false);
    });
  });

  describe('addRestoreHold', () => {
    it('keeps the address occupied when its lease is deleted or a write fails', () => {
      const { book, tell } = follow();
      tell(added(lease('10.0.0.5', 99)));
      book.addRestoreHold('blue', ADDRESS);
      tell(removed(lease('10.0.0.5', 99)));
      book.markPending('blue', ADDRESS);
      book.clearPending('blue', ADDRESS);
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(true);
    });

    it('reports once that the address is free when the hold ends', () => {
      const { book } = follow();
      const given: string[] = [];
      book.onAddressFreed((space, { value }) => given.push(`${space} ${value}`));
      book.addRestoreHold('blue', ADDRESS);
      book.removeRestoreHold('blue', ADDRESS);
      book.removeRestoreHold('blue', ADDRESS);
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(false);
      expect(given).to.deep.equal([`blue ${ADDRESS.value}`]);
    });

    it('leaves the address occupied if it has a lease or a pending write', () => {
      const { book } = follow();
      book.addRestoreHold('blue', ADDRESS);
      book.markPending('blue', ADDRESS);
      book.removeRestoreHold('blue', ADDRESS);
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(true);
      book.recordWrite(lease('10.0.0.5', 99));
      book.clearPending('blue', ADDRESS);
      book.addRestoreHold('blue', ADDRESS);
      book.removeRestoreHold('blue', ADDRESS);
      expect(book.space('blue').isOccupied(ADDRESS)).to.equal(true);
    });

    it('hides a released lease of the address from others', () => {
      const { book, tell } = follow();
      tell(added(lease('10.0.0.5', 99, { releasedAt: NOW })));
      book.addRestoreHold('blue', ADDRESS);
      expect(book.view(pool()).cooling(4, TIMES)).to.deep.equal({ count: 1 });
      book.removeRestoreHold('blue', ADDRESS);
      expect(book.view(pool()).cooling(4, TIMES).first?.lease.address).to.deep.equal(ADDRESS);
    });
  });

  describe('after a restart', () => {
    const leases = [
      lease('10.0.0.2', 99, { uid: 'u2', createdAt: '2026-01-01T00:00:02Z' }),
      lease('10.0.0.4', 100, { uid: 'u4', createdAt: '2026-01-01T00:00:09Z' }),
      lease('10.0.0.6', 101, { uid: 'u6', createdAt: '2026-01-01T00:00:05Z' }),
    ];

    it('continues after the newest lease, whether pools or leases arrive first', () => {
      const poolFirst = follow();
      const leasesFirst = follow(new LeaseBook());
      for (const { book, tell } of [poolFirst, leasesFirst]) {
        for (const each of leases) tell(added(each));
        expect(book.view(pool()).space.next('blue', 4)).to.deep.equal(ADDRESS);
      }
    });

    it('ignores leases of other processes once it has chosen an address', () => {
      const { book, tell } = follow();
      for (const each of leases) tell(added(each));
      expect(book.view(pool()).space.next('blue', 4)).to.deep.equal(ADDRESS);
      tell(added(lease('10.0.0.1', 110, { uid: 'u1', createdAt: '2026-01-01T00:01:00Z' })));
      expect(book.view(pool()).space.next('blue', 4)).to.deep.equal(ADDRESS);
    });
  });

  it('follows a pool into another address space', () => {
    const { book, tell } = follow();
    tell(added(lease('10.0.0.5', 99)));
    expect(book.space('blue').free('blue', 4)).to.equal(5n);
    book.setPool(pool({ addressSpace: 'elsewhere' }));
    expect(book.space('blue').free('blue', 4)).to.equal(0n);
    expect(book.space('elsewhere').free('blue', 4)).to.equal(6n);
    book.removePool('blue', 'blue');
    expect(book.space('elsewhere').free('blue', 4)).to.equal(0n);
    expect([...book.ofPool('blue')].length).to.equal(1);
  });

  describe('view', () => {
    it('returns the sticky leases of a MAC address', () => {
      const mac = '02:00:00:00:00:ab';
      const { book, tell } = follow();
      const view = book.view(pool());
      const kept = (family: Family, times = STICKY, of = mac) =>
        view.stickyLeases(family, of, times).map(({ address }) => formatAddress(address));
      tell(added(lease('10.0.0.1', 99, { uid: 'u1', mac })));
      expect(kept(4)).to.deep.equal([]);
      tell(added(lease('10.0.0.2', 100, { uid: 'u2', mac, releasedAt: NOW })));
      tell(added(lease('10.0.0.3', 101, { uid: 'u3', mac, releasedAt: NOW + 1 })));
      expect(kept(4, STICKY, mac.toUpperCase())).to.have.members(['10.0.0.2', '10.0.0.3']);
      expect(kept(6)).to.deep.equal([]);
      const { owner: _nobody, ...spec } = lease('10.0.0.4', 102, { mac }).spec;
      tell(added({ ...lease('10.0.0.4', 102, { uid: 'u4' }), spec }));
      expect(kept(4, { ...STICKY, isStickyForClaims: false })).to.deep.equal(['10.0.0.4']);
    });

    it('returns the released lease that cools down first and has no pending write', () => {
      const { book, tell } = follow();
      const view = book.view(pool());
      tell(added(lease('10.0.0.2', 99, { uid: 'u2', releasedAt: NOW + 2 })));
      expect(view.cooling(4, TIMES)).to.deep.include({ count: 1 });
      tell(added(lease('10.0.0.3', 100, { uid: 'u3', releasedAt: NOW })));
      tell(added(lease('10.0.0.4', 101, { uid: 'u4', releasedAt: NOW + 1 })));
      tell(added(lease('10.0.0.5', 102, { uid: 'u5' })));
      const firstAt = () => view.cooling(4, TIMES).first;
      expect(firstAt()?.cooledAt).to.equal(NOW + 60_000);
      book.markPending('blue', parseAddress('10.0.0.3'));
      expect(firstAt()?.lease.address).to.deep.equal(parseAddress('10.0.0.4'));
      book.clearPending('blue', parseAddress('10.0.0.3'));
      expect(firstAt()?.lease.address).to.deep.equal(parseAddress('10.0.0.3'));
      expect(view.cooling(4, { cooldownMs: 1000, stickyMs: 0 }).first?.cooledAt).to.equal(NOW + 1000);
      tell(removed(lease('10.0.0.3', 100, { uid: 'u3' })));
      expect(view.cooling(4, TIMES)).to.deep.include({ count: 2 });
      expect(firstAt()?.lease.address).to.deep.equal(parseAddress('10.0.0.4'));
    });

    it('returns no released lease that an edit of the pool has excluded', () => {
      const { book, tell } = follow();
      tell(added(lease('10.0.0.3', 100, { releasedAt: NOW })));
      expect(book.view(pool()).cooling(4, TIMES)).to.deep.include({ count: 1 });
      const narrowed = pool({ subnets: [{ cidr: '10.0.0.0/29', exclude: ['10.0.0.3'] }] });
      expect(book.view(narrowed).cooling(4, TIMES)).to.deep.equal({ count: 0 });
    });
  });
});
