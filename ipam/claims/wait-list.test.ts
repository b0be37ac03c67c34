import { expect } from 'chai';
import { parseAddress } from '../../addressing/address/address.js';
import { ClaimWaitList } from './wait-list.js';

const BLUE = { name: 'blue', addressSpace: 'blue' };
const GREEN = { name: 'green', addressSpace: 'blue' };
const TEN = parseAddress('10.0.0.10');

describe('claims that wait', () => {
  let woken: string[];
  let sizes: number[];
  let waitList: ClaimWaitList;

  beforeEach(() => {
    woken = [];
    sizes = [];
    waitList = new ClaimWaitList(
      (keys) => woken.push(...keys),
      (size) => sizes.push(size),
    );
  });

  it('are counted, without those that wait only because their address is draining', () => {
    waitList.set('vms/a', { created: '2026-01-01', pool: BLUE });
    waitList.set('vms/b', { created: '2026-01-02', pool: BLUE, isDraining: true });
    waitList.remove('vms/a');
    expect(sizes).to.deep.equal([1, 1, 0]);
  });

  it('are queued by age, then by name, in any order of arrival', () => {
    waitList.set('vms/young', { created: '2026-01-03', pool: BLUE });
    waitList.set('vms/b', { created: '2026-01-01', pool: BLUE });
    waitList.set('vms/a', { created: '2026-01-01', pool: BLUE });
    const countOlder = (key: string, created: string) => waitList.countOlder('blue', 4, { key, created });
    expect([
      countOlder('vms/a', '2026-01-01'),
      countOlder('vms/b', '2026-01-01'),
      countOlder('vms/young', '2026-01-03'),
    ]).to.deep.equal([0, 1, 2]);
    expect(countOlder('vms/new', '2026-01-02')).to.equal(2);
    expect(waitList.countOlder('green', 4, { key: 'vms/new', created: '2026-01-02' })).to.equal(0);
  });

  it('wake the next claim when they leave, with an address or deleted', () => {
    waitList.set('vms/a', { created: '1', pool: BLUE });
    waitList.set('vms/b', { created: '2', pool: BLUE });
    waitList.remove('vms/a');
    expect(woken).to.deep.equal(['vms/b']);
    waitList.remove('vms/b');
    waitList.remove('vms/b');
    expect(woken).to.deep.equal(['vms/b']);
    expect(waitList.size).to.equal(0);
  });

  it('come before those whose address is draining, which are neither counted nor synced for counts', () => {
    waitList.set('vms/a', { created: '1', pool: BLUE, isDraining: true });
    waitList.set('vms/b', { created: '2', pool: BLUE });
    expect(waitList.countOlder('blue', 4, { key: 'vms/c', created: '3' })).to.equal(1);
    expect(waitList.countOlder('blue', 4, { key: 'vms/a', created: '1', isDraining: true })).to.equal(1);
    expect(waitList.claimsToWake('blue', TEN)).to.deep.equal(['vms/b']);
    expect(waitList.size).to.equal(1);
    expect(waitList.recheckMs('vms/a')).to.be.greaterThan(waitList.recheckMs('vms/b'));
    waitList.remove('vms/b');
    expect(woken).to.deep.equal(['vms/a']);
  });

  it('move up in the queue when they lack an address, and back when they only drain', () => {
    waitList.set('vms/a', { created: '1', pool: BLUE });
    waitList.set('vms/b', { created: '2', pool: BLUE, isDraining: true });
    waitList.set('vms/c', { created: '3', pool: BLUE });
    const before = () => waitList.countOlder('blue', 4, { key: 'vms/c', created: '3' });
    expect(before()).to.equal(1);
    waitList.set('vms/b', { created: '2', pool: BLUE });
    expect([before(), waitList.size]).to.deep.equal([2, 3]);
    waitList.set('vms/b', { created: '2', pool: BLUE, isDraining: true });
    expect([before(), waitList.size]).to.deep.equal([1, 2]);
  });

  it('are counted if they wait for a requested address, although theirs is draining', () => {
    const addresses = [{ addressSpace: 'blue', address: TEN }];
    waitList.set('vms/a', { created: '1', pool: BLUE, isDraining: true, addresses });
    expect(waitList.size).to.equal(1);
    expect(waitList.countOlder('blue', 4, { key: 'vms/b', created: '2' })).to.equal(0);
  });

  it('are queued by the families that they lack, and woken only for those', () => {
    waitList.set('vms/a', { created: '1', pool: BLUE, families: [6] });
    waitList.set('vms/b', { created: '2', pool: BLUE, families: [4] });
    waitList.set('vms/c', { created: '3', pool: BLUE, families: [4, 6] });
    const older = ([4, 6] as const).map((family) => waitList.countOlder('blue', family, { key: 'd', created: '4' }));
    expect(older).to.deep.equal([2, 2]);
    expect(waitList.claimsToWake('blue', TEN)).to.deep.equal(['vms/b']);
    expect(waitList.claimsToWake('blue', parseAddress('2001:db8::1'))).to.deep.equal(['vms/a']);
    waitList.remove('vms/a');
    expect(woken).to.deep.equal(['vms/c']);
  });

  it('keep their place and wake none when they are refused again', () => {
    waitList.set('vms/a', { created: '1', pool: BLUE });
    waitList.set('vms/b', { created: '2', pool: BLUE });
    waitList.set('vms/a', { created: '1', pool: BLUE });
    expect(waitList.countOlder('blue', 4, { key: 'vms/b', created: '2' })).to.equal(1);
    expect(woken).to.deep.equal([]);
  });

  it('leave one queue for another when their pool changes', () => {
    waitList.set('vms/a', { created: '1', pool: BLUE });
    waitList.set('vms/b', { created: '2', pool: BLUE });
    waitList.set('vms/a', { created: '1', pool: GREEN });
    expect(woken).to.deep.equal(['vms/b']);
    expect(waitList.countOlder('blue', 4, { key: 'vms/b', created: '2' })).to.equal(0);
  });

  it('are woken by the end of a lease if they wait for its address or are first in a queue of its address space', () => {
    waitList.set('vms/a', { created: '1', pool: BLUE });
    waitList.set('vms/b', { created: '2', pool: BLUE });
    waitList.set('vms/c', { created: '3', pool: GREEN });
    waitList.set('vms/e', { created: '5', addresses: [{ addressSpace: 'blue', address: TEN }] });
    waitList.set('vms/d', { created: '4', addresses: [{ addressSpace: 'blue', address: TEN }] });
    expect(waitList.claimsToWake('blue', TEN)).to.deep.equal(['vms/d', 'vms/e', 'vms/a', 'vms/c']);
    expect(waitList.claimsToWake('blue', parseAddress('10.0.0.11'))).to.deep.equal(['vms/a', 'vms/c']);
    expect(waitList.claimsToWake('other', TEN)).to.deep.equal([]);
  });

  it('show new counts once a minute, or ten of all claims a second', () => {
    const named = (index: number) => waitList.set(`vms/${index}`, { created: '1', pool: BLUE });
    named(0);
    expect([0, 59_999, 60_000, 60_001].map((now) => waitList.canUpdateCounts('vms/0', now))).to.deep.equal([
      ...[false, false, true, false],
    ]);
    for (let index = 1; index < 1_000; index++) named(index);
    expect([160_000, 160_001].map((now) => waitList.canUpdateCounts('vms/0', now))).to.deep.equal([true, false]);
    expect(waitList.canUpdateCounts('vms/0', 259_999)).to.equal(false);
    expect(waitList.recheckMs('vms/0')).to.equal(100_000);
  });

  it('are forgotten when a new leadership term begins', () => {
    waitList.set('vms/a', { created: '1', pool: BLUE });
    waitList.set('vms/b', { created: '2', addresses: [{ addressSpace: 'blue', address: TEN }] });
    waitList.clear();
    expect([waitList.size, ...waitList.claimsToWake('blue', TEN), ...woken]).to.deep.equal([0]);
    expect(waitList.countOlder('blue', 4, { key: 'vms/c', created: '3' })).to.equal(0);
  });

  it('wait for another address once that is set', () => {
    waitList.set('vms/a', { created: '1', addresses: [{ addressSpace: 'blue', address: TEN }] });
    waitList.set('vms/a', { created: '1', addresses: [{ addressSpace: 'blue', address: parseAddress('10.0.0.11') }] });
    expect(waitList.claimsToWake('blue', TEN)).to.deep.equal([]);
    waitList.remove('vms/a');
    expect(waitList.claimsToWake('blue', parseAddress('10.0.0.11'))).to.deep.equal([]);
  });

  it('are woken by each of several addresses that they wait for', () => {
    const eleven = parseAddress('10.0.0.11');
    const addresses = [TEN, eleven].map((address) => ({ addressSpace: 'blue', address }));
    waitList.set('vms/a', { created: '1', addresses });
    const toWake = () => [TEN, eleven].flatMap((address) => [...waitList.claimsToWake('blue', address)]);
    expect(toWake()).to.deep.equal(['vms/a', 'vms/a']);
    waitList.remove('vms/a');
    expect(toWake()).to.deep.equal([]);
  });
});
