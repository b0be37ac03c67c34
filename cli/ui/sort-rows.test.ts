import { expect } from 'chai';
import type { PoolRow, VmRow } from './protocol.js';
import { POOL_SORTS, VM_SORTS, sortedList } from './sort-rows.js';

const vmRow = (name: string, given: Partial<VmRow> = {}): VmRow => {
  return { namespace: 'vms', name, status: '', node: '', addresses: [], problem: '', ...given };
};
const poolOf = (name: string, free: number, problems = 0): PoolRow => {
  const counts = [{ family: 'IPv4', capacity: 100, free, cooling: 0 }];
  return { name, counts, isReady: true, problems: Array(problems).fill({}) } as unknown as PoolRow;
};

describe('The order of rows on the web page', () => {
  const names = ({ rows }: { readonly rows: readonly { readonly name: string }[] }) =>
    rows.map(({ name }) => name).join(' ');

  it('counts numbers in names and addresses as numbers', () => {
    const rows = [vmRow('vm10', { addresses: ['10.0.0.9/24'] }), vmRow('vm2', { addresses: ['10.0.0.10/24'] })];
    expect(names(sortedList(rows, 'vm', VM_SORTS))).to.equal('vm2 vm10');
    expect(names(sortedList(rows, 'addresses', VM_SORTS))).to.equal('vm10 vm2');
  });

  it('sorts IPv6 addresses by their values, after those of IPv4', () => {
    const texts = ['fd00::10/64', 'fd00::a/64', '2001:db8::1:0/64', '203.0.113.9/24', 'fd00::9/64'];
    const rows = texts.map((text) => vmRow(text, { addresses: [text] }));
    expect(names(sortedList(rows, 'addresses', VM_SORTS))).to.equal(
      '203.0.113.9/24 2001:db8::1:0/64 fd00::9/64 fd00::a/64 fd00::10/64',
    );
  });

  it('shows what is wrong, and what is nearly full, first', () => {
    const rows = [poolOf('a', 50), poolOf('b', 0, 1), poolOf('c', 7)];
    expect(names(sortedList(rows, '-problems', POOL_SORTS))).to.equal('b a c');
    expect(names(sortedList(rows, '-use', POOL_SORTS))).to.equal('b c a');
    expect(names(sortedList(rows, 'free', POOL_SORTS))).to.equal('b c a');
    expect(names(sortedList([vmRow('a'), vmRow('b', { problem: 'full' })], '-problem', VM_SORTS))).to.equal('b a');
  });

  it('finds the first of many rows as a sort of all of them does', () => {
    const rows = Array.from({ length: 5_000 }, (_, n) => vmRow(`vm${(n * 7_919) % 5_000}`, { node: `n${n % 3}` }));
    const numberOf = ({ name }: VmRow) => Number(name.slice(2));
    for (const sign of [1, -1]) {
      const sorted = rows.toSorted((a, b) => sign * (numberOf(a) - numberOf(b)));
      for (const given of [rows, sorted, sorted.toReversed()])
        expect(sortedList(given, sign < 0 ? '-vm' : 'vm', VM_SORTS)).to.deep.equal({ rows: sorted.slice(0, 200), total: 5_000 }); // oxfmt-ignore
    }
    // those with the same value keep their order
    const first = rows.filter(({ node }) => node === 'n2').slice(0, 200);
    expect(sortedList(rows, '-node', VM_SORTS).rows).to.deep.equal(first);
  });

  it('puts a pool whose addresses are not counted yet after the full ones', () => {
    const rows = [{ ...poolOf('new', 0), counts: [] }, poolOf('full', 0)];
    expect(names(sortedList(rows, '-use', POOL_SORTS))).to.equal('full new');
  });

  for (const sort of ['', 'constructor', '-', 'no such column'])
    it(`stays as it is for "${sort}"`, () => {
      expect(names(sortedList([vmRow('b'), vmRow('a')], sort, VM_SORTS))).to.equal('b a');
    });
});
