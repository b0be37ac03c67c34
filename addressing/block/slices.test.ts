import { expect } from 'chai';
import fc from 'fast-check';
import { adminPool, type PoolGiven } from '../../test/objects/pool-objects.js';
import { type Family, formatAddress, parseAddress } from '../address/address.js';
import { type Cidr, formatCidr, lastOf, parseCidr, rangeOf } from '../address/cidr.js';
import { type Pool, compilePool } from '../pool/pool.js';
import { Slices } from './slices.js';

function poolOf(given: PoolGiven): Pool {
  const compiled = compilePool(adminPool('blue', given));
  if (!compiled.ok) throw new Error(compiled.problems.map(({ message }) => message).join());
  return compiled.pool;
}

function texts(slices: Slices): string[] {
  return [...slices.all()].map(formatCidr);
}

describe('the slices of a pool', () => {
  it('are the aligned parts of its subnets', () => {
    const slices = new Slices(poolOf({ cidr: '10.0.0.0/24' }), 4);
    expect(texts(slices)).to.deep.equal(['10.0.0.0/26', '10.0.0.64/26', '10.0.0.128/26', '10.0.0.192/26']);
    expect(slices.count).to.equal(4n);
  });

  it('leave out parts without open addresses', () => {
    const subnets = [{ cidr: '10.0.0.0/24', exclude: ['10.0.0.64/26'], reserved: ['10.0.0.192/26'] }];
    expect(texts(new Slices(poolOf({ subnets }), 4))).to.deep.equal(['10.0.0.0/26', '10.0.0.128/26']);
  });

  it('contain subnets that are smaller than a block as a whole', () => {
    const subnets = [{ cidr: '10.0.0.0/28' }, { cidr: '10.0.0.16/28' }, { cidr: '10.0.1.0/25' }];
    const slices = new Slices(poolOf({ subnets }), 4);
    expect(texts(slices)).to.deep.equal(['10.0.0.0/28', '10.0.0.16/28', '10.0.1.0/26', '10.0.1.64/26']);
    expect(slices.has(parseCidr('10.0.0.16/28'))).to.equal(true);
    expect(slices.has(parseCidr('10.0.0.0/26'))).to.equal(false);
  });

  it('have the block size of the pool', () => {
    const slices = new Slices(poolOf({ cidr: '10.0.0.0/24', blockSize: { ipv4: 25 } }), 4);
    expect(texts(slices)).to.deep.equal(['10.0.0.0/25', '10.0.0.128/25']);
  });

  it('are empty for a family that the pool does not have', () => {
    const slices = new Slices(poolOf({ cidr: '10.0.0.0/24' }), 6);
    expect({ count: slices.count, all: texts(slices) }).to.deep.equal({ count: 0n, all: [] });
  });

  it('are found in a huge pool without iterating over it', () => {
    const slices = new Slices(poolOf({ cidr: '2001:db8::/64', blockSize: { ipv6: 126 } }), 6);
    expect(slices.count).to.equal(1n << 62n);
    const { value: address } = parseAddress('2001:db8::1:2:3:7');
    const found = slices.sliceOf(address);
    expect(found && formatCidr(found)).to.equal('2001:db8::1:2:3:4/126');
    const all = slices.all()[Symbol.iterator]();
    expect(formatCidr(all.next().value as Cidr)).to.equal('2001:db8::/126');
    expect(slices.countOpen(slices.open.ranges[0] ?? { first: 0n, last: 0n })).to.equal((1n << 64n) - 1n);
  });

  it('are the same as a search over all addresses finds', () => {
    fc.assert(
      fc.property(givenPools, ({ family, subnets, size }) => {
        const blockSize = family === 4 ? { ipv4: size } : { ipv6: size };
        const pool = poolOf({ subnets, blockSize });
        const slices = new Slices(pool, family);
        const naive = naiveSlices(pool, family, size);
        expect(texts(slices)).to.deep.equal([...naive.keys()]);
        expect(slices.count).to.equal(BigInt(naive.size));
        for (const slice of slices.all()) {
          const open = naive.get(formatCidr(slice)) ?? 0;
          expect(slices.countOpen(rangeOf(slice))).to.equal(BigInt(open));
          expect(slices.has(slice)).to.equal(true);
          for (const value of [slice.base, lastOf(slice)]) expect(slices.sliceOf(value)).to.deep.equal(slice);
        }
        for (const { cidr } of pool.subnets) {
          const slice = slices.sliceOf(cidr.base);
          expect(slice !== undefined && naive.has(formatCidr(slice))).to.equal(slice !== undefined);
        }
      }),
    );
  });
});

const BASES: Readonly<Record<Family, string>> = { 4: '10.0.0.0', 6: '2001:db8::' };
const BITS_OF: Readonly<Record<Family, number>> = { 4: 32, 6: 128 };

/** Subnets of up to 64 addresses, each at a multiple of 64, with parts of them left out; slices of up to 64 addresses. */
const givenPools = fc.constantFrom<Family>(4, 6).chain((family) => {
  const base = parseAddress(BASES[family]).value;
  const at = (value: bigint) => formatAddress({ family, value });
  const subnet = (index: number) =>
    fc.record({ hostBits: fc.integer({ min: 2, max: 6 }), from: fc.nat(63), length: fc.nat(40) }).map((given) => {
      const first = base + BigInt(64 * index);
      const size = 2 ** given.hostBits;
      const from = given.from % size;
      const to = Math.min(size - 1, from + given.length);
      const isAll = from === 0 && to === size - 1;
      const exclude = isAll ? [] : [`${at(first + BigInt(from))}-${at(first + BigInt(to))}`];
      return { cidr: `${at(first)}/${BITS_OF[family] - given.hostBits}`, exclude };
    });
  return fc.record({
    family: fc.constant(family),
    subnets: fc.uniqueArray(fc.nat(8), { minLength: 1, maxLength: 4 }).chain((at) => fc.tuple(...at.map(subnet))),
    size: fc.integer({ min: BITS_OF[family] - 6, max: BITS_OF[family] }),
  });
});

/** By CIDR, in order, how many open addresses. */
function naiveSlices(pool: Pool, family: Family, size: number): Map<string, number> {
  const found = new Map<string, number>();
  for (const { cidr, open } of [...pool.subnets].sort((a, b) => (a.cidr.base < b.cidr.base ? -1 : 1))) {
    const prefixLength = Math.max(size, cidr.prefixLength);
    const hostBits = BigInt(BITS_OF[family] - prefixLength);
    for (let value = cidr.base; value <= lastOf(cidr); value++) {
      if (!open.has(value)) continue;
      const slice = formatCidr({ family, base: (value >> hostBits) << hostBits, prefixLength });
      found.set(slice, (found.get(slice) ?? 0) + 1);
    }
  }
  return found;
}
