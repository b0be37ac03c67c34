import { expect } from 'chai';
import type { ClaimQuota } from '../caches.js';
import { QuotaWaits } from './waiting-workloads.js';

describe('workloads that wait for a quota', () => {
  let woken: string[];
  let waits: QuotaWaits;
  beforeEach(() => {
    woken = [];
    waits = new QuotaWaits((key) => woken.push(key));
  });

  const quota = (claims: string): ClaimQuota => ({ metadata: { name: 'addresses', namespace: 'vms' }, claims });

  it('are tried in the order in which they came, one of each namespace at a time', () => {
    expect(['vms/b', 'vms/a', 'other/a', 'vms/b'].map((key) => waits.join(key))).to.deep.equal([
      true,
      false,
      true,
      true,
    ]);
  });

  it('are woken one after the other while each has success', () => {
    for (const key of ['vms/a', 'vms/b', 'vms/c']) waits.join(key);
    waits.quotaChanged({ type: 'changed', object: quota('2/3'), before: quota('3/3') });
    expect(woken).to.deep.equal(['vms/a']);
    waits.leave('vms/a');
    expect(woken).to.deep.equal(['vms/a', 'vms/b']);
    waits.join('vms/b');
    expect(woken, 'after another rejection').to.deep.equal(['vms/a', 'vms/b']);
  });

  it('keep their order if one that is not the first leaves', () => {
    for (const key of ['vms/a', 'vms/b', 'vms/c']) waits.join(key);
    waits.leave('vms/b');
    expect(woken).to.deep.equal([]);
    waits.leave('vms/a');
    expect(woken).to.deep.equal(['vms/c']);
  });

  it('are woken if a quota is created or deleted, but not if it counts other kinds', () => {
    waits.join('vms/a');
    waits.quotaChanged({ type: 'changed', object: quota('3/3'), before: quota('3/3') });
    waits.quotaChanged({ type: 'removed', object: { ...quota('1/1'), metadata: { name: 'q', namespace: 'other' } } });
    expect(woken).to.deep.equal([]);
    waits.quotaChanged({ type: 'removed', object: quota('3/3'), before: quota('3/3') });
    waits.quotaChanged({ type: 'added', object: quota('3/5') });
    expect(woken).to.deep.equal(['vms/a', 'vms/a']);
  });

  it('wake nobody after the last one has left', () => {
    waits.join('vms/a');
    waits.leave('vms/a');
    waits.leave('vms/a');
    waits.quotaChanged({ type: 'added', object: quota('0/5') });
    expect(woken).to.deep.equal([]);
  });
});
