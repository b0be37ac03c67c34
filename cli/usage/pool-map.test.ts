import { expect } from 'chai';
import { compiledPool, leaseOf } from '../../test/objects/lease-objects.js';
import { blockRecord } from '../../test/objects/block-objects.js';
import { rangeOf } from '../../addressing/address/cidr.js';
import { readLease } from '../../addressing/lease/lease.js';
import { addressMapOf, formatRange } from './address-map.js';
import { cellsOf } from './pool-map.js';

const POOL = compiledPool({ cidr: '10.0.0.0/24', blockSize: { ipv4: 28 } });
const LEASES = ['10.0.0.5', '10.0.0.64', '10.0.0.65'].map((address) => readLease(leaseOf(address, 1)));
const BLOCKS = [blockRecord('10.0.0.64/28', 1), blockRecord('10.0.0.80/28', 1)];
const [SUBNET] = addressMapOf(POOL, { leases: LEASES, blocks: BLOCKS }, 0).subnets;
const RUNS = SUBNET!.runs;
const WHOLE = rangeOf(SUBNET!.cidr);

describe('the cells of an address map', () => {
  it('divide a range into equal parts and count the addresses of each by state', () => {
    const cells = cellsOf(RUNS, WHOLE, 4);
    expect(cells.map((cell) => [formatRange(cell, 4), cell.counts])).to.deep.equal([
      ['10.0.0.0-10.0.0.63', { excluded: 1n, free: 62n, allocated: 1n }],
      ['10.0.0.64-10.0.0.127', { allocated: 2n, free: 62n }],
      ['10.0.0.128-10.0.0.191', { free: 64n }],
      ['10.0.0.192-10.0.0.255', { free: 63n, excluded: 1n }],
    ]);
  });

  it('name the node of a cell only if all of its addresses are in blocks of that node', () => {
    expect(cellsOf(RUNS, WHOLE, 8)[2]).to.include({ node: 'n1' });
    expect(cellsOf(RUNS, WHOLE, 4)[1]).not.to.have.property('node');
  });

  it('have one address each if the width is that of the range, and never less', () => {
    expect(cellsOf(RUNS, WHOLE, 256)).to.have.length(256);
    expect(cellsOf(RUNS, WHOLE, 1_000)).to.have.length(256);
  });

  it('are fewer than the width if the range cannot be divided by it', () => {
    const { first } = WHOLE;
    const cells = cellsOf(RUNS, { first, last: first + 9n }, 4);
    expect(cells.map((cell) => cell.last - cell.first + 1n)).to.deep.equal([3n, 3n, 3n, 1n]);
  });

  it('cover a part of the subnet', () => {
    const { first } = WHOLE;
    const cells = cellsOf(RUNS, { first: first + 60n, last: first + 67n }, 2);
    expect(cells.map(({ counts }) => counts)).to.deep.equal([{ free: 4n }, { allocated: 2n, free: 2n }]);
  });

  it('count all addresses of an IPv6 /64', () => {
    const pool = compiledPool({ subnets: [{ cidr: '2001:db8::/64' }] });
    const [subnet] = addressMapOf(pool, { leases: [] }, 0).subnets;
    const cells = cellsOf(subnet!.runs, rangeOf(subnet!.cidr), 100);
    expect(cells.reduce((sum, { counts }) => sum + (counts.free ?? 0n), 0n)).to.equal(2n ** 64n - 1n);
    expect(cells).to.have.length(100);
  });
});
