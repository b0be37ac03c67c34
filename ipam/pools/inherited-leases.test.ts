import { expect } from 'chai';
import fc from 'fast-check';
import { compiledPool } from '../../addressing/directory/pool-state.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import { adminPool, cacheOf } from '../../test/objects/pool-objects.js';
import { inheritedLeasesOf } from './inherited-leases.js';

const namespaces = fc.option(fc.subarray(['a', 'b'], { minLength: 1 }), { nil: undefined });
const given = {
  admins: fc.array(fc.record({ namespaces, deleting: fc.boolean() }), { maxLength: 3 }),
  nadNamespaces: fc.subarray(['a', 'b']),
};

describe('the leases that a pool inherits', () => {
  it('are those of other pools whose owners get their next addresses from it', () => {
    fc.assert(
      fc.property(given.admins, given.nadNamespaces, (admins, nadNamespaces) => {
        const derived = nadNamespaces.map((nadNamespace) => adminPool(`blue.${nadNamespace}`, { nadNamespace }));
        const pools = admins.map(({ namespaces: named, deleting }, index) =>
          adminPool(`p${index}`, { born: index + 1, deleting, ...(named && { namespaces: named }) }),
        );
        const directory = new PoolDirectory({ pools: cacheOf([...pools, ...derived]), networks: cacheOf([]) });
        const all = directory.poolsOf('blue');
        const leases = all.flatMap(({ name, nadNamespace }) =>
          (nadNamespace === undefined ? ['a', 'b'] : [nadNamespace]).map((namespace) => ({ pool: name, namespace })),
        );
        for (const pool of all.flatMap((each) => compiledPool(each) ?? [])) {
          const inherited = inheritedLeasesOf(pool, directory);
          const found = leases.filter(({ pool: name, namespace }) => {
            const owner = { kind: 'IPAMClaim', namespace, name: 'vm.data', uid: 'u' } as const;
            return inherited.pools.includes(name) && inherited.includes({ addressSpace: 'blue', owner });
          });
          const expected = leases.filter(({ pool: name, namespace }) => {
            const resolution = directory.resolveUser({ namespace, network: 'blue', isClaim: true });
            return name !== pool.name && resolution.kind === 'served' && resolution.pool === pool;
          });
          expect(found).to.deep.equal(expected);
        }
      }),
    );
  });
});
