import { expect } from 'chai';
import fc from 'fast-check';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { parseAddress } from '../address/address.js';
import { type Pool, subnetOf } from '../pool/pool.js';
import { SubnetIndex } from './indexes.js';

const SUBNETS = ['10.0.0.0/8', '10.1.0.0/16', '10.1.1.0/24', '10.1.1.4/32', 'fd00::/16', 'fd00::/64', 'fd00::4/128'];
const ADDRESSES = [
  '10.1.1.4',
  '10.1.1.5',
  '10.1.2.4',
  '10.2.0.1',
  '11.0.0.1',
  'fd00::4',
  'fd00::5',
  'fd00:1::',
  'fe80::1',
];

describe('The index of subnets', () => {
  const pools = SUBNETS.flatMap((cidr, index) =>
    ['blue', 'red'].map((addressSpace) => compiledPool({ addressSpace, cidr }, `${addressSpace}-${index}`)),
  );

  it('finds the same pools as a look at each of them, whichever came and went', () => {
    const steps = fc.array(fc.record({ pool: fc.constantFrom(...pools), isAdded: fc.boolean() }), { maxLength: 40 });
    fc.assert(
      fc.property(steps, (taken) => {
        const index = new SubnetIndex();
        const known = new Map<string, Pool>();
        for (const { pool, isAdded } of taken) {
          if (isAdded) known.set(pool.name, pool);
          else known.delete(pool.name);
          if (isAdded) index.add(pool);
          else index.delete(pool);
        }
        for (const address of ADDRESSES.map(parseAddress)) {
          const found = [...known.values()].filter((pool) => subnetOf(pool, address) !== undefined);
          for (const space of ['blue', 'red']) {
            const inSpace = found.filter(({ addressSpace }) => addressSpace === space);
            const names = inSpace.map(({ name }) => name).sort();
            expect([...index.poolsContaining(space, address)].sort()).to.deep.equal(names);
          }
        }
      }),
    );
  });

  it('does not look at the pools to find those with an address', () => {
    let looks = 0;
    const index = new SubnetIndex();
    for (let n = 0; n < 500; n++) {
      const pool = compiledPool({ cidr: `10.${n % 250}.0.0/16` }, `p${n}`);
      const { subnets } = pool;
      index.add(Object.defineProperty({ ...pool }, 'subnets', { get: () => (looks++, subnets) }));
    }
    looks = 0;
    expect([...index.poolsContaining('blue', parseAddress('10.7.0.1'))].sort()).to.deep.equal(['p257', 'p7']);
    expect(looks).to.equal(0);
  });
});
