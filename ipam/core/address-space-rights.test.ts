import { expect } from 'chai';
import { adminPool } from '../../test/pool-objects.js';
import { addressSpaceRefusal } from './address-space-rights.js';
import { type Pool, compilePool } from './pool.js';

function pool(name: string, given: Parameters<typeof adminPool>[1]): Pool {
  const compiled = compilePool(adminPool(name, { addressSpace: 'lan', ...given }));
  if (!compiled.ok) expect.fail(compiled.problems[0]?.message);
  return compiled.pool;
}

const CIDR = '10.9.0.0/24';
const guard = (namespaces?: string[], more: object = {}) =>
  pool('guard', { network: 'red', cidr: CIDR, ...(namespaces && { namespaces }), ...more });

describe('addressSpaceRefusal', () => {
  const rows: [string, { admins: Pool[]; isNamed?: boolean; addressSpace?: string; refused?: boolean }][] = [
    ['allows the pool of a NAD if no administrator has a pool in the address space', { admins: [] }],
    ['allows it if the administrator’s pool serves all namespaces', { admins: [guard()] }],
    ['allows it if the administrator’s pool serves the namespace of the NAD', { admins: [guard(['x', 'a'])] }],
    ['refuses it if the administrator’s pool serves only other namespaces', { admins: [guard(['x'])], refused: true }],
    [
      'refuses it if the pool serves only other namespaces, even if no address is shared',
      { admins: [guard(['x'], { cidr: '10.8.0.0/24' })], refused: true },
    ],
    [
      'refuses it if one pool serves the namespace but addresses of another pool are shared',
      { admins: [guard(['a'], { cidr: '10.8.0.0/24' }), guard(['x'])], refused: true },
    ],
    [
      'allows it if addresses are shared only with a pool that serves the namespace',
      { admins: [guard(['a']), guard(['x'], { cidr: '10.8.0.0/24' })] },
    ],
    [
      "is not needed to share the address space of one's network name",
      { admins: [guard(['x'], { network: 'blue' })], isNamed: false },
    ],
    [
      'refuses it for a network with the name of an address space of other namespaces',
      { admins: [guard(['x'])], isNamed: false, refused: true },
    ],
    [
      "refuses it if a NAD sets an address space that equals its network's name",
      { admins: [guard(['x'], { network: 'blue' })], refused: true },
    ],
  ];
  for (const [name, { admins, isNamed = true, refused = false }] of rows) {
    it(name, () => {
      const derived = pool('blue.a', { cidr: CIDR });
      const refusal = addressSpaceRefusal({ pool: derived, namespace: 'a', isNamed }, admins);
      expect(refusal !== undefined).to.equal(refused);
      if (refused)
        expect(refusal).to.include('"lan"').and.to.include('AddressPool guard').and.to.include('namespace a');
    });
  }
});
