import { expect } from 'chai';
import fc from 'fast-check';
import { formatAddress } from '../address/address.js';
import { type PoolGiven, adminPool } from '../../test/objects/pool-objects.js';
import { addressesOf, compilePool } from './pool.js';
import { firstSharedAddress, overlappingSubnets } from './address-space-rights.js';

function pool(subnets: PoolGiven['subnets']) {
  const compiled = compilePool(adminPool('p', { ...(subnets && { subnets }) }));
  if (!compiled.ok) expect.fail(compiled.problems[0]?.message);
  return compiled.pool;
}

/** Subnets of 16 or 32 addresses, some of which are excluded. */
const subnets = fc
  .record({
    blocks: fc.uniqueArray(fc.nat(3), { minLength: 1, maxLength: 3 }),
    hostBits: fc.constantFrom(4, 5),
    isV6: fc.boolean(),
    excluded: fc.array(fc.integer({ min: 1, max: 15 }), { maxLength: 12 }),
  })
  .map(({ blocks, hostBits, isV6, excluded }) =>
    blocks.map((block) => {
      const address = (offset: number) => {
        const host = (block << hostBits) + offset;
        return isV6 ? `2001:db8::${host.toString(16)}` : `10.0.0.${host}`;
      };
      return { cidr: `${address(0)}/${(isV6 ? 128 : 32) - hostBits}`, exclude: excluded.map(address) };
    }),
  );

describe('the addresses that two pools share', () => {
  it('exist if the sets of all their addresses have one in common', () => {
    fc.assert(
      fc.property(subnets, subnets, (a, b) => {
        const [one, other] = [pool(a), pool(b)];
        const common = ([4, 6] as const).flatMap((family) => {
          const { ranges } = addressesOf(one, family, 'leasable').intersect(addressesOf(other, family, 'leasable'));
          return ranges.map((range) => ({ family, ...range }));
        });
        const shared = firstSharedAddress(one, other);
        expect(shared === undefined).to.equal(common.length === 0);
        const isCommon = common.some(
          ({ family, first, last }) => family === shared?.family && first <= shared.value && shared.value <= last,
        );
        if (shared !== undefined) expect(isCommon, formatAddress(shared)).to.equal(true);
      }),
    );
  });

  it('are looked for only in subnets that overlap', () => {
    const one = pool([{ cidr: '10.0.0.0/24' }, { cidr: '10.1.0.0/24' }, { cidr: '2001:db8::/64' }]);
    const other = pool([{ cidr: '10.1.0.128/25' }, { cidr: '10.2.0.0/24' }]);
    const pairs = [...overlappingSubnets(one, other)].map((pair) => pair.map(({ cidr }) => cidr.prefixLength));
    expect(pairs).to.deep.equal([[24, 25]]);
  });
});
