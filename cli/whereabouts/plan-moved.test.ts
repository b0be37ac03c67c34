import { leaseOf } from '../../test/lease-objects.js';
import { itPlansMigrations } from '../testing/migration-plan-cases.js';
import { ipPool, livePod, whereaboutsNad } from '../testing/migration-world.js';
import { adminPool } from '../../test/pool-objects.js';

describe('the plan of moving over from whereabouts', () => {
  describe('goes on where a NAD has moved over by now', () => {
    const moved = whereaboutsNad('a/blue', { type: 'holdfast', range: '10.0.0.0/24' });
    const pool = adminPool('blue.a', { nadNamespace: 'a' });
    const ipPools = [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })];
    itPlansMigrations([
      {
        name: 'with what whereabouts gave out in the last moments; the rest is Holdfast’s',
        given: {
          nads: [moved],
          pools: [pool],
          ipPools,
          pods: [livePod('a/p'), livePod('a/vm', { has: { 'a/blue': ['10.0.0.9'] } })],
        },
        expect: ['exists pool blue.a', 'create blue.10-0-0-5 of blue.a for Pod p'],
      },
      {
        name: 'and tells of an address that both have given out',
        given: {
          nads: [moved],
          pools: [pool],
          ipPools,
          pods: [livePod('a/p')],
          leases: [leaseOf('10.0.0.5', 1)],
        },
        expect: ['conflict lease: 10.0.0.5 in address space blue'],
      },
      {
        name: 'in its address space, which those that share its range get, too',
        given: {
          nads: [moved, whereaboutsNad('b/red', { range: '10.0.0.0/24' }, { born: 0 })],
          pools: [pool],
          ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24')],
        },
        expect: ['create pool red.b', 'b/red gets "addressSpace": "blue"'],
      },
      {
        name: 'but has nothing to do with NADs of which whereabouts knows nothing',
        given: { nads: [moved] },
        expect: [],
      },
    ]);
  });
});
