import { expect } from 'chai';
import type { PoolRow, VmRow } from './protocol.js';
import { POOL_SORTS, VM_SORTS, sortRows } from './sort-rows.js';

const vmRow = (name: string, given: Partial<VmRow> = {}): VmRow => {
  return { namespace: 'vms', name, status: '', node: '', addresses: [], problem: '', ...given };
};
const poolOf = (name: string, free: number, problems = 0): PoolRow => {
  const counts = [{ family: 'IPv4', capacity: 100, free, cooling: 0 }];
  return { name, counts, isReady: true, problems: Array(problems).fill({}) } as unknown as PoolRow;
};

describe('The order of rows on the web page', () => {
  const names = (rows: readonly { readonly name: string }[]) => rows.map(({ name }) => name).join(' ');

  it('counts numbers in names and addresses as numbers', () => {
    const rows = [vmRow('vm10', { addresses: ['10.0.0.9/24'] }), vmRow('vm2', { addresses: ['10.0.0.10/24'] })];
    expect(names(sortRows(rows, 'vm', VM_SORTS))).to.equal('vm2 vm10');
    expect(names(sortRows(rows, 'addresses', VM_SORTS))).to.equal('vm10 vm2');
  });

  it('shows what is wrong, and what is nearly full, first', () => {
    const rows = [poolOf('a', 50), poolOf('b', 0, 1), poolOf('c', 7)];
    expect(names(sortRows(rows, '-problems', POOL_SORTS))).to.equal('b a c');
    expect(names(sortRows(rows, '-use', POOL_SORTS))).to.equal('b c a');
    expect(names(sortRows(rows, 'free', POOL_SORTS))).to.equal('b c a');
    expect(names(sortRows([vmRow('a'), vmRow('b', { problem: 'full' })], '-problem', VM_SORTS))).to.equal('b a');
  });

  it('puts a pool whose addresses are not counted yet after the full ones', () => {
    const rows = [{ ...poolOf('new', 0), counts: [] }, poolOf('full', 0)];
    expect(names(sortRows(rows, '-use', POOL_SORTS))).to.equal('full new');
  });

  for (const sort of ['', 'constructor', '-', 'no such column'])
    it(`stays as it is for "${sort}"`, () => {
      expect(names(sortRows([vmRow('b'), vmRow('a')], sort, VM_SORTS))).to.equal('b a');
    });
});
