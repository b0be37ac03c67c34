import { expect } from 'chai';
import fc from 'fast-check';
import { compiledPool } from '../../test/objects/lease-objects.js';
import type { PoolGiven } from '../../test/objects/pool-objects.js';
import { formatAddress } from '../../addressing/address/address.js';
import { addressesOf } from '../../addressing/pool/pool.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { type SegmentPool, describeOverlap, findOverlaps } from './segment-overlap.js';

const segmentPool = (name: string, spec: PoolGiven, nadNamespace?: string): SegmentPool => ({
  pool: compiledPool({ addressSpace: name, ...spec }, name),
  nadNamespace,
});

const firstOf = (pools: SegmentPool[]) =>
  Object.fromEntries([...runAtOnce(findOverlaps(pools))].map(([name, { address }]) => [name, formatAddress(address)]));

describe('pools of one layer-2 segment', () => {
  it('overlap if two address spaces have the same addresses', () => {
    const pools = [segmentPool('red', { cidr: '10.0.0.0/24' }), segmentPool('blue', { cidr: '10.0.0.128/25' })];
    expect(firstOf(pools)).to.deep.equal({ red: '10.0.0.129', blue: '10.0.0.129' });
  });

  it('do not overlap within one address space', () => {
    const pools = ['red', 'blue'].map((name) => segmentPool(name, { cidr: '10.0.0.0/24', addressSpace: 'office' }));
    expect(firstOf(pools)).to.deep.equal({});
  });

  it('do not overlap if they lease different ranges of one subnet', () => {
    const half = (ranges: string[]) => ({ subnets: [{ cidr: '10.0.0.0/24', ranges }] });
    const pools = [
      segmentPool('red', half(['10.0.0.10-10.0.0.50'])),
      segmentPool('blue', half(['10.0.0.51-10.0.0.90'])),
    ];
    expect(firstOf(pools)).to.deep.equal({});
  });

  it('overlap in IPv6 as well', () => {
    const pools = [segmentPool('red', { cidr: 'fd00::/64' }), segmentPool('blue', { cidr: 'fd00::/112' })];
    expect(firstOf(pools)).to.have.keys('red', 'blue');
  });

  it('are found to overlap exactly if two of different address spaces share an address', () => {
    const range = fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 12 }));
    const pool = fc.record({ space: fc.constantFrom('red', 'blue', 'green'), range });
    fc.assert(
      fc.property(fc.array(pool, { maxLength: 8 }), (given) => {
        const pools = given.map(({ space, range: [first, length] }, index) => {
          const ranges = [`10.0.0.${first}-10.0.0.${first + length}`];
          return segmentPool(`p${index}`, { addressSpace: space, subnets: [{ cidr: '10.0.0.0/24', ranges }] });
        });
        const share = (a: SegmentPool, b: SegmentPool) =>
          a.pool.addressSpace !== b.pool.addressSpace && !common(a, b).isEmpty;
        const expected = pools.filter((one) => pools.some((other) => share(one, other)));
        const found = runAtOnce(findOverlaps(pools));
        expect([...found.keys()].sort()).to.deep.equal(expected.map(({ pool: { name } }) => name).sort());
        for (const one of expected) {
          const { other, address } = found.get(one.pool.name)!;
          expect(common(one, other).has(address.value)).to.equal(true);
        }
      }),
    );
  });

  it('are named to the owner of a NAD only if they are of the same namespace', () => {
    const pools = [segmentPool('red', { cidr: '10.0.0.0/24' }, 'a'), segmentPool('blue', { cidr: '10.0.0.0/24' }, 'b')];
    const overlap = runAtOnce(findOverlaps(pools)).get('red');
    expect(describeOverlap('bridge br0', overlap!, 'a')).to.match(/on bridge br0: another AddressPool has/);
    const own = { ...overlap!, other: { ...overlap!.other, nadNamespace: 'a' } };
    expect(describeOverlap('bridge br0', own, 'a')).to.match(/AddressPool blue \(address space blue\) has/);
  });
});

function common(a: SegmentPool, b: SegmentPool) {
  const [one, other] = [a, b].map(({ pool }) => addressesOf(pool as ReturnType<typeof compiledPool>, 4, 'requestable'));
  return one!.intersect(other!);
}
