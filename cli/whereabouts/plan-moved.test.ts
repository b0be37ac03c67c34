import { leaseOf } from '../../test/objects/lease-objects.js';
import { itPlansMigrations } from '../testing/migration-plan-cases.js';
import { ipPool, livePod, whereaboutsNad } from '../testing/migration-world.js';
import { adminPool } from '../../test/objects/pool-objects.js';

describe('the migration plan', () => {
  describe('continues after a NAD has changed', () => {
    const moved = whereaboutsNad('a/blue', { type: 'holdfast', range: '10.0.0.0/24' });
    const pool = adminPool('blue.a', { nadNamespace: 'a' });
    const ipPools = [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })];
    itPlansMigrations([
      {
        name: 'with the last allocations of whereabouts, but not with those of Holdfast',
        given: {
          nads: [moved],
          pools: [pool],
          ipPools,
          pods: [livePod('a/p'), livePod('a/vm', { has: { 'a/blue': ['10.0.0.9'] } })],
        },
        expect: ['exists pool blue.a', 'create blue.10-0-0-5 of blue.a for Pod p'],
      },
      {
        name: 'and reports an address that both have allocated',
        given: { nads: [moved], pools: [pool], ipPools, pods: [livePod('a/p')], leases: [leaseOf('10.0.0.5', 1)] },
        expect: ['conflict lease: 10.0.0.5 in address space blue'],
      },
      {
        name: 'in its address space, which NADs with a common range get too',
        given: {
          nads: [moved, whereaboutsNad('b/red', { range: '10.0.0.0/24' }, { born: 0 })],
          pools: [pool],
          ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24')],
        },
        expect: ['create pool red.b', 'b/red gets "addressSpace": "blue"'],
      },
      { name: 'and ignores NADs without IPPools', given: { nads: [moved] }, expect: [] },
    ]);
  });
});
