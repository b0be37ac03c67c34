import { expect } from 'chai';
import { adminPool } from '../../test/objects/pool-objects.js';
import { ipPool, livePod, whereaboutsNad, observedOf, reservation } from '../testing/migration-world.js';
import { BLUE, POOL, RANGE, itPlansMigrations } from '../testing/migration-plan-cases.js';
import { planMigration } from './plan.js';

describe('the migration plan', () => {
  describe('leases its addresses to a pod', () => {
    itPlansMigrations([
      {
        name: 'from the offsets of an IPPool',
        given: { nads: [BLUE], ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })], pods: [livePod('a/p')] },
        expect: [POOL, 'create blue.10-0-0-5 of blue.a for Pod p'],
      },
      {
        name: 'counting from the address as written, including its host bits',
        given: {
          nads: [whereaboutsNad('a/blue', { range: '192.168.2.225/28' })],
          ipPools: [ipPool('192.168.2.225-28', '192.168.2.225/28', { 1: 'a/p' })],
          pods: [livePod('a/p')],
        },
        expect: [POOL, 'create blue.192-168-2-226 of blue.a for Pod p'],
      },
      {
        name: 'in IPv6, with an offset beyond the safe integers',
        given: {
          nads: [whereaboutsNad('a/blue', { range: 'fd00::/64' })],
          ipPools: [ipPool('fd00---64', 'fd00::/64', { '18446744073709551614': 'a/p' })],
          pods: [livePod('a/p')],
        },
        expect: [POOL, 'create blue.fd00-0000-0000-0000-ffff-ffff-ffff-fffe of blue.a for Pod p'],
      },
      {
        name: 'of several ranges with one IPPool each',
        given: {
          nads: [whereaboutsNad('a/blue', { ipRanges: [{ range: '10.0.0.0/24' }, { range: 'fd00::/120' }] })],
          ipPools: [
            ipPool('10.0.0.0-24', '10.0.0.0/24', { 2: 'a/p' }),
            ipPool('fd00---120', 'fd00::/120', { 2: 'a/p' }),
          ],
          pods: [livePod('a/p')],
        },
        expect: [
          POOL,
          'create blue.10-0-0-2 of blue.a for Pod p',
          'create blue.fd00-0000-0000-0000-0000-0000-0000-0002 of blue.a for Pod p',
        ],
      },
      {
        name: 'of a NAD with a plugin list',
        given: {
          nads: [
            whereaboutsNad(
              'a/blue',
              JSON.stringify({ name: 'lan', plugins: [{ type: 'macvlan', ipam: { type: 'whereabouts', ...RANGE } }] }),
            ),
          ],
          ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })],
          pods: [livePod('a/p')],
        },
        expect: ['create pool lan.a', 'create lan.10-0-0-5 of lan.a for Pod p'],
      },
      {
        name: 'of the slice of its node',
        given: {
          nads: [whereaboutsNad('a/blue', { range: '10.0.0.0/16', node_slice_size: '/24' })],
          slices: [
            {
              metadata: { namespace: 'kube-system', name: 'blue' },
              status: { allocations: [{ nodeName: 'node-1', sliceRange: '10.0.7.0/24' }, 'x', { nodeName: 'n' }] },
            },
          ],
          ipPools: [
            ipPool('node-1-10.0.7.0-24', '10.0.7.0/24', { 5: 'a/p' }),
            ipPool('lost-10.0.8.0-24', '10.0.8.0/24', { 6: 'a/q' }),
          ],
          pods: [livePod('a/p'), livePod('a/q')],
        },
        expect: [POOL, 'create blue.10-0-7-5 of blue.a for Pod p', 'create blue.10-0-8-6 of blue.a for Pod q'],
      },
      {
        name: 'of a range that its NAD has extended since',
        given: {
          nads: [whereaboutsNad('a/blue', { range: '10.0.0.0/23' })],
          ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })],
          pods: [livePod('a/p')],
        },
        expect: [POOL, 'create blue.10-0-0-5 of blue.a for Pod p'],
      },
      {
        name: 'of a deleted NAD if another NAD can serve the address',
        given: {
          nads: [whereaboutsNad('a/green', { range: '10.0.0.0/25' })],
          ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })],
          pods: [livePod('a/p', { has: { 'a/blue': ['10.0.0.5'] } })],
        },
        expect: ['create pool green.a', 'create green.10-0-0-5 of green.a for Pod p'],
      },
      {
        name: 'that only a reservation records',
        given: { nads: [BLUE], reservations: [reservation('10.0.0.9', 'a/p')], pods: [livePod('a/p')] },
        expect: [POOL, 'create blue.10-0-0-9 of blue.a for Pod p'],
      },
      {
        name: 'that only the pod itself reports',
        given: { nads: [BLUE], pods: [livePod('a/p', { has: { 'a/blue': ['10.0.0.9'] } })] },
        expect: [POOL, 'create blue.10-0-0-9 of blue.a for Pod p'],
      },
      {
        name: 'that an old version does not name, by the pod’s report',
        given: {
          nads: [BLUE],
          ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: { id: 'c1' }, 6: { id: 'c2', podref: '' } })],
          pods: [livePod('a/p', { has: { 'a/blue': ['10.0.0.5'] } })],
        },
        expect: [POOL, 'create blue.10-0-0-5 of blue.a for Pod p', 'left out 10.0.0.6: unreadable'],
      },
      {
        name: 'from an administrator’s pool, which takes precedence',
        given: {
          nads: [BLUE],
          pools: [adminPool('mine')],
          ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })],
          pods: [livePod('a/p')],
        },
        expect: ['exists pool mine', 'create blue.10-0-0-5 of mine for Pod p'],
      },
      {
        name: 'as leases of its claim',
        given: {
          nads: [BLUE],
          ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })],
          pods: [livePod('a/p')],
          claims: [
            {
              metadata: { namespace: 'a', name: 'vm.data', uid: 'u' },
              spec: { network: 'blue', interface: 'net1' },
              status: { ips: ['10.0.0.5/24'], ownerPod: { name: 'p' } },
            },
          ],
        },
        expect: [POOL, 'create blue.10-0-0-5 of blue.a for IPAMClaim vm.data'],
      },
    ]);
  });

  describe('shares address spaces like whereabouts', () => {
    const pods = [
      livePod('a/p', { has: { 'a/blue': ['10.0.0.5'] } }),
      livePod('b/q', { has: { 'b/red': ['10.0.0.6'] } }),
    ];
    itPlansMigrations([
      {
        name: 'between networks of one range, named by the oldest',
        given: {
          nads: [whereaboutsNad('b/red', { range: '10.0.0.0/24' }, { born: 2 }), BLUE],
          ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p', 6: 'b/q' })],
          pods,
        },
        expect: [
          'create pool blue.a',
          'create pool red.b',
          'create blue.10-0-0-5 of blue.a for Pod p',
          'create blue.10-0-0-6 of red.b for Pod q',
          'b/red gets "addressSpace": "blue"',
        ],
      },
      {
        name: 'not between networks that opt out',
        given: {
          nads: [BLUE, whereaboutsNad('b/red', { range: '10.0.0.0/24', network_name: 'lan' })],
          ipPools: [
            ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' }),
            ipPool('lan-10.0.0.0-24', '10.0.0.0/24', { 5: 'b/q' }),
          ],
          reservations: [reservation('10.0.0.5', 'a/p'), reservation('lan-10.0.0.5', 'b/q')],
          pods: [livePod('a/p'), livePod('b/q')],
        },
        expect: [
          'create pool blue.a',
          'create pool red.b',
          'create blue.10-0-0-5 of blue.a for Pod p',
          'create lan.10-0-0-5 of red.b for Pod q',
        ],
      },
      {
        name: 'across a chain of overlapping ranges',
        given: {
          nads: [
            BLUE,
            whereaboutsNad('b/red', { range: '10.0.1.0/24' }),
            whereaboutsNad('c/all', { range: '10.0.0.0/23' }, { born: 3 }),
          ],
        },
        expect: [
          'create pool blue.a',
          'create pool red.b',
          'create pool all.c',
          'b/red gets "addressSpace": "blue"',
          'c/all gets "addressSpace": "blue"',
        ],
      },
    ]);
  });

  it('stores in a lease all fields that its release needs', () => {
    const plan = planMigration(
      observedOf({
        nads: [BLUE],
        ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: { id: 'c1', podref: 'a/p' } })],
        pods: [livePod('a/p', { has: { 'a/blue': ['10.0.0.5'] } })],
      }),
    );
    expect(plan.leases[0]?.request).to.deep.include({
      pool: 'blue.a',
      addressSpace: 'blue',
      owner: { kind: 'Pod', namespace: 'a', name: 'p', uid: 'a/p-uid' },
      node: 'node-1',
      containerID: 'c1',
      interface: 'net1',
      mac: '02:00:00:00:00:01',
    });
  });

  it('creates the pool that Holdfast derives from the changed NAD', () => {
    const [planned] = planMigration(observedOf({ nads: [BLUE] })).pools;
    expect(planned?.pool).to.deep.include({
      metadata: {
        name: 'blue.a',
        labels: { 'ipam.holdfast.dev/nad-namespace': 'a' },
        annotations: { 'ipam.holdfast.dev/nad-namespace': 'a' },
        finalizers: ['ipam.holdfast.dev/leased'],
      },
      spec: {
        network: 'blue',
        subnets: [{ cidr: '10.0.0.0/24', gateway: '10.0.0.1', exclude: ['10.0.0.128/25'] }],
        namespaces: ['a'],
      },
    });
  });

  it('changes only the IPAM type of a NAD', () => {
    const config = {
      name: 'lan',
      mtu: 9,
      plugins: [{ type: 'macvlan', ipam: { range: '10.0.0.0/24', type: 'whereabouts' } }, { type: 'tuning' }],
    };
    const { changes } = planMigration(observedOf({ nads: [whereaboutsNad('a/blue', JSON.stringify(config))] }));
    expect(changes).to.have.length(1);
    expect(changes[0]).to.deep.include({
      nad: 'a/blue',
      path: 'spec.config.plugins[0].ipam',
      removed: ['"type": "whereabouts"'],
      added: ['"type": "holdfast"'],
      config: JSON.stringify(config).replace('whereabouts', 'holdfast'),
    });
  });

  it('names the other namespaces whose pods use the NAD, so that its pool serves them', () => {
    const has = (address: string) => ({ has: { 'a/blue': [address] } });
    const users = [livePod('b/p', has('10.0.0.5')), livePod('a/p', has('10.0.0.6'))];
    const allocations = {
      5: { id: 'c1', podref: 'b/p', ifname: 'net1' },
      6: { id: 'c2', podref: 'a/p', ifname: 'net1' },
    };
    const ipPools = [ipPool('10.0.0.0-24', '10.0.0.0/24', allocations)];
    const { changes } = planMigration(observedOf({ nads: [BLUE], ipPools, pods: users }));
    expect(changes[0]?.added).to.deep.equal(['"type": "holdfast"', '"namespaces": ["b"]']);
  });

  it('tells whether a VM can have a claim', () => {
    const given = {
      nads: [BLUE, whereaboutsNad('a/red', { range: '10.1.0.0/24' }, { allowPersistentIPs: true })],
      pods: [livePod('a/p', { vmi: 'vm', has: { 'a/blue': ['10.0.0.5'], 'a/red': ['10.1.0.5'] } })],
    };
    expect(planMigration(observedOf(given)).vms).to.deep.equal([
      { vm: 'a/vm', nad: 'a/blue', network: 'blue', address: '10.0.0.5', claim: false },
      { vm: 'a/vm', nad: 'a/red', network: 'red', address: '10.1.0.5', claim: true },
    ]);
  });
});
