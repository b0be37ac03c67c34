import { expect } from 'chai';
import { parseAddress } from '../core/address.js';
import { ClaimWaitList } from './wait-list.js';

const BLUE = { name: 'blue', addressSpace: 'blue' };
const GREEN = { name: 'green', addressSpace: 'blue' };
const TEN = parseAddress('10.0.0.10');

describe('claims that wait', () => {
  let woken: string[];
  let waiters: ClaimWaitList;

  beforeEach(() => {
    woken = [];
    waiters = new ClaimWaitList((keys) => woken.push(...keys));
  });

  it('stand in a line by age, then by name, whenever they came', () => {
    waiters.set('vms/young', { created: '2026-01-03', pool: BLUE });
    waiters.set('vms/b', { created: '2026-01-01', pool: BLUE });
    waiters.set('vms/a', { created: '2026-01-01', pool: BLUE });
    const ahead = (key: string, created: string) => waiters.ahead('blue', { key, created });
    expect([
      ahead('vms/a', '2026-01-01'),
      ahead('vms/b', '2026-01-01'),
      ahead('vms/young', '2026-01-03'),
    ]).to.deep.equal([0, 1, 2]);
    expect(ahead('vms/new', '2026-01-02')).to.equal(2);
    expect(waiters.ahead('green', { key: 'vms/new', created: '2026-01-02' })).to.equal(0);
  });

  it('wake the next when they leave, whether they have an address or are gone', () => {
    waiters.set('vms/a', { created: '1', pool: BLUE });
    waiters.set('vms/b', { created: '2', pool: BLUE });
    waiters.remove('vms/a');
    expect(woken).to.deep.equal(['vms/b']);
    waiters.remove('vms/b');
    waiters.remove('vms/b');
    expect(woken).to.deep.equal(['vms/b']);
    expect(waiters.size).to.equal(0);
  });

  it('keep their place and wake nobody when they are refused again', () => {
    waiters.set('vms/a', { created: '1', pool: BLUE });
    waiters.set('vms/b', { created: '2', pool: BLUE });
    waiters.set('vms/a', { created: '1', pool: BLUE });
    expect(waiters.ahead('blue', { key: 'vms/b', created: '2' })).to.equal(1);
    expect(woken).to.deep.equal([]);
  });

  it('leave one line for another', () => {
    waiters.set('vms/a', { created: '1', pool: BLUE });
    waiters.set('vms/b', { created: '2', pool: BLUE });
    waiters.set('vms/a', { created: '1', pool: GREEN });
    expect(woken).to.deep.equal(['vms/b']);
    expect(waiters.ahead('blue', { key: 'vms/b', created: '2' })).to.equal(0);
  });

  it('are concerned by a lease’s end where it is the address they wait for, or they are first for a pool of its space', () => {
    waiters.set('vms/a', { created: '1', pool: BLUE });
    waiters.set('vms/b', { created: '2', pool: BLUE });
    waiters.set('vms/c', { created: '3', pool: GREEN });
    waiters.set('vms/e', { created: '5', addresses: [{ addressSpace: 'blue', address: TEN }] });
    waiters.set('vms/d', { created: '4', addresses: [{ addressSpace: 'blue', address: TEN }] });
    expect(waiters.concerned('blue', TEN)).to.deep.equal(['vms/d', 'vms/e', 'vms/a', 'vms/c']);
    expect(waiters.concerned('blue', parseAddress('10.0.0.11'))).to.deep.equal(['vms/a', 'vms/c']);
    expect(waiters.concerned('other', TEN)).to.deep.equal([]);
  });

  it('show other counts once a minute, or all of them together ten times a second', () => {
    const named = (index: number) => waiters.set(`vms/${index}`, { created: '1', pool: BLUE });
    named(0);
    expect([0, 59_999, 60_000, 60_001].map((now) => waiters.canUpdateCounts('vms/0', now))).to.deep.equal([
      ...[false, false, true, false],
    ]);
    for (let index = 1; index < 1_000; index++) named(index);
    expect([160_000, 160_001].map((now) => waiters.canUpdateCounts('vms/0', now))).to.deep.equal([true, false]);
    expect(waiters.canUpdateCounts('vms/0', 259_999)).to.equal(false);
    expect(waiters.recheckMs).to.equal(100_000);
  });

  it('are forgotten when a new term of leadership begins', () => {
    waiters.set('vms/a', { created: '1', pool: BLUE });
    waiters.set('vms/b', { created: '2', addresses: [{ addressSpace: 'blue', address: TEN }] });
    waiters.clear();
    expect([waiters.size, ...waiters.concerned('blue', TEN), ...woken]).to.deep.equal([0]);
    expect(waiters.ahead('blue', { key: 'vms/c', created: '3' })).to.equal(0);
  });

  it('wait for another address once they are told so', () => {
    waiters.set('vms/a', { created: '1', addresses: [{ addressSpace: 'blue', address: TEN }] });
    waiters.set('vms/a', { created: '1', addresses: [{ addressSpace: 'blue', address: parseAddress('10.0.0.11') }] });
    expect(waiters.concerned('blue', TEN)).to.deep.equal([]);
    waiters.remove('vms/a');
    expect(waiters.concerned('blue', parseAddress('10.0.0.11'))).to.deep.equal([]);
  });

  it('wait for each of several addresses', () => {
    const eleven = parseAddress('10.0.0.11');
    const addresses = [TEN, eleven].map((address) => ({ addressSpace: 'blue', address }));
    waiters.set('vms/a', { created: '1', addresses });
    expect([...waiters.concerned('blue', TEN), ...waiters.concerned('blue', eleven)]).to.deep.equal(['vms/a', 'vms/a']);
    waiters.remove('vms/a');
    expect([...waiters.concerned('blue', TEN), ...waiters.concerned('blue', eleven)]).to.deep.equal([]);
  });
});
