import { BLUE, POOL, itPlansMigrations } from '../testing/migration-plan-cases.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { ipPool, livePod, whereaboutsNad, reservation } from '../testing/migration-world.js';
import type { MigrationObservation } from './plan-types.js';

describe('the migration plan', () => {
  describe('leaves out', () => {
    const of = (allocations: Record<string, unknown>, pods = [livePod('a/p')]): Partial<MigrationObservation> => ({
      nads: [BLUE],
      ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', allocations)],
      pods,
    });
    itPlansMigrations([
      { name: 'the address of a gone pod', given: of({ 5: 'a/gone' }), expect: [POOL, 'left out 10.0.0.5: pod-gone'] },
      {
        name: 'the address of a terminal pod',
        given: of({ 5: 'a/p' }, [livePod('a/p', { phase: 'Failed' })]),
        expect: [POOL, 'left out 10.0.0.5: pod-gone'],
      },
      {
        name: 'the address of an earlier pod of that name',
        given: of({ 5: 'a/p', 6: 'a/p' }, [livePod('a/p', { has: { 'a/blue': ['10.0.0.6'] } })]),
        expect: [POOL, 'create blue.10-0-0-6 of blue.a for Pod p', 'left out 10.0.0.5: stale'],
      },
      {
        name: 'keys that are not offsets, and invalid allocations',
        given: of({ five: 'a/p', '-1': 'a/p', 7: null, 8: ['a/p'] }),
        expect: [
          POOL,
          'left out 10.0.0.7: unreadable',
          'left out 10.0.0.8: unreadable',
          'left out IPPool kube-system/10.0.0.0-24 allocation "five": unreadable',
          'left out IPPool kube-system/10.0.0.0-24 allocation "-1": unreadable',
        ],
      },
      {
        name: 'addresses outside the range',
        given: of({ 256: 'a/p' }),
        expect: [POOL, 'left out IPPool kube-system/10.0.0.0-24 allocation "256": outside'],
      },
      {
        name: 'the gateway and excluded addresses',
        given: of({ 1: 'a/p', 200: 'a/p' }),
        expect: [POOL, 'left out 10.0.0.1: not-leasable', 'left out 10.0.0.200: not-leasable'],
      },
      {
        name: 'an IPPool without a NAD',
        given: { ipPools: [ipPool('10.9.0.0-24', '10.9.0.0/24', { 1: 'a/gone', 2: 'a/q' })], pods: [livePod('a/p')] },
        expect: ['left out IPPool kube-system/10.9.0.0-24: no-nad'],
      },
      {
        name: 'invalid IPPools and reservations',
        given: {
          nads: [BLUE],
          ipPools: [
            ipPool('10.0.0.0-24', 7),
            { metadata: { namespace: 'kube-system', name: 'none' } },
            { metadata: { namespace: 'kube-system', name: 'list' }, spec: { range: '10.0.0.0/24', allocations: [] } },
          ],
          reservations: [reservation('what-is-this', 'a/p'), { metadata: { namespace: 'n', name: '10.0.0.5' } }],
        },
        expect: [
          POOL,
          'left out IPPool kube-system/10.0.0.0-24: unreadable',
          'left out IPPool kube-system/none: unreadable',
          'left out IPPool kube-system/list: unreadable',
          'left out OverlappingRangeIPReservation kube-system/what-is-this: unreadable',
          'left out 10.0.0.5: unreadable',
        ],
      },
    ]);
  });

  describe('has a conflict', () => {
    const both = {
      nads: [BLUE, whereaboutsNad('b/red', { range: '10.0.0.0/16' })],
      ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' }), ipPool('10.0.0.0-16', '10.0.0.0/16', { 5: 'b/q' })],
    };
    const one = { nads: [BLUE], ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })], pods: [livePod('a/p')] };
    const pools = ['create pool blue.a', 'create pool red.b'];
    const space = 'b/red gets "addressSpace": "blue"';
    itPlansMigrations([
      {
        name: 'if two active pods have one address',
        given: { ...both, pods: [livePod('a/p'), livePod('b/q')] },
        expect: [...pools, 'conflict address: 10.0.0.5 in address space blue', space],
      },
      {
        name: 'but not if one of the two pods reports another address',
        given: { ...both, pods: [livePod('a/p'), livePod('b/q', { has: { 'b/red': ['10.0.9.9'] } })] },
        expect: [
          ...pools,
          'create blue.10-0-0-5 of blue.a for Pod p',
          'create blue.10-0-9-9 of red.b for Pod q',
          'left out 10.0.0.5: stale',
          space,
        ],
      },
      {
        name: 'if another owner has a lease',
        given: { ...one, leases: [leaseOf('10.0.0.5', 1)] },
        expect: [POOL, 'conflict lease: 10.0.0.5 in address space blue'],
      },
      {
        name: 'if the address is quarantined',
        given: { ...one, leases: [leaseOf('10.0.0.5', 1, { takenBy: '02:00:00:00:00:99' })] },
        expect: [POOL, 'conflict lease: 10.0.0.5 in address space blue'],
      },
      {
        name: 'if an administrator has reserved the address',
        given: {
          ...one,
          leases: [
            {
              metadata: { name: 'blue.10-0-0-5', uid: 'u', resourceVersion: '1' },
              spec: { address: '10.0.0.5', addressSpace: 'blue', pool: 'blue.a' },
            },
          ],
        },
        expect: [POOL, 'conflict lease: 10.0.0.5 in address space blue'],
      },
      {
        name: 'if a claim of another workload has the address',
        given: {
          ...one,
          claims: [
            {
              metadata: { namespace: 'a', name: 'vm.data', uid: 'u' },
              spec: { network: 'blue', interface: 'net1' },
              status: { ips: ['10.0.0.5/24', 'what'] },
            },
          ],
        },
        expect: [POOL, 'conflict claim: 10.0.0.5 in address space blue'],
      },
      {
        name: 'if an administrator’s pool has other subnets',
        given: { ...one, pools: [adminPool('mine', { cidr: '10.7.0.0/24' })] },
        expect: ['left out 10.0.0.5: outside', 'conflict pool: AddressPool mine'],
      },
      {
        name: 'if an administrator’s pool has another address space than a network of the same range',
        given: {
          nads: [BLUE, whereaboutsNad('b/red', { range: '10.0.0.0/24' })],
          pools: [adminPool('mine', { network: 'red' })],
        },
        expect: [POOL, 'conflict pool: AddressPool mine', space],
      },
      {
        name: 'if another pool has the name of the derived pool',
        given: { ...one, pools: [adminPool('blue.a', { network: 'other' })] },
        expect: ['left out 10.0.0.5: no-nad', 'conflict network: NAD a/blue'],
      },
      {
        name: 'if the pool is being deleted',
        given: { ...one, pools: [adminPool('blue.a', { nadNamespace: 'a', deleting: true })] },
        expect: ['left out 10.0.0.5: no-nad', 'conflict network: NAD a/blue'],
      },
      {
        name: 'if NADs of one namespace and network differ',
        given: { nads: [BLUE, whereaboutsNad('a/two', { range: '10.4.0.0/24' }, { born: 2, name: 'blue' })] },
        expect: [POOL, 'conflict network: NAD a/two'],
      },
      {
        name: 'if the range is in a file on the nodes',
        given: { nads: [whereaboutsNad('a/blue', {})] },
        expect: ['conflict network: NAD a/blue'],
      },
      {
        name: 'if active pods have addresses of an IPPool without a NAD',
        given: {
          nads: [BLUE],
          ipPools: [ipPool('lan-10.0.0.0-24', '10.0.0.0/24', { 1: 'a/gone', 2: 'a/p' })],
          pods: [livePod('a/p')],
        },
        expect: [POOL, 'conflict range: IPPool kube-system/lan-10.0.0.0-24'],
      },
      {
        name: 'if a NAD is invalid or names two IPAMs',
        given: {
          nads: [
            whereaboutsNad('a/json', '{"ipam": {"type": "whereabouts"'),
            whereaboutsNad('a/key', { range: '10.0.0.0/24', rang_start: 'x' }),
            whereaboutsNad('a/range', { range: '10.0.0.0/99' }),
            whereaboutsNad(
              'a/two',
              JSON.stringify({ plugins: [{ ipam: { type: 'whereabouts' } }, { ipam: { type: 'dhcp' } }] }),
            ),
            whereaboutsNad('a/other', JSON.stringify({ name: 'whereabouts', ipam: { type: 'dhcp' } })),
          ],
        },
        expect: ['json', 'key', 'range', 'two'].map((name) => `conflict network: NAD a/${name}`),
      },
    ]);
  });
});
