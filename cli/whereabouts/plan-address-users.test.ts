import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { CLAIM_NAD } from '../../api/names.js';
import { BLUE, POOL, itPlansMigrations } from '../testing/migration-plan-cases.js';
import { ipPool, livePod, whereaboutsNad, observedOf, reservation } from '../testing/migration-world.js';
import { STATIC_UID, mirrorPod } from '../../test/objects/mirror-pod.js';
import { planMigration } from './plan.js';

function claim(key: string, { nad, owner }: { nad?: string; owner?: string } = {}): IPAMClaim {
  const [namespace = '', name = ''] = key.split('/');
  return {
    metadata: { namespace, name, uid: key, ...(nad !== undefined && { annotations: { [CLAIM_NAD]: nad } }) },
    spec: { network: 'blue', interface: 'net1' },
    status: { ips: ['10.0.0.5/24'], ...(owner !== undefined && { ownerPod: { name: owner } }) },
  };
}

describe('the migration plan', () => {
  describe('uses the report of a pod', () => {
    const owner = livePod('a/p', { has: { 'a/blue': ['10.0.0.5'] } });
    const other = livePod('x/other', { has: { 'a/blue': ['10.0.0.5'] } });
    const left = 'left out 10.0.0.5: unconfirmed';
    const lease = 'create blue.10-0-0-5 of blue.a for Pod p';
    itPlansMigrations([
      {
        name: 'but not against an IPPool',
        given: { nads: [BLUE], ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })], pods: [other, owner] },
        expect: [POOL, lease, left],
      },
      {
        name: 'but not against a reservation',
        given: { nads: [BLUE], reservations: [reservation('10.0.0.5', 'a/p')], pods: [other, owner] },
        expect: [POOL, lease, left],
      },
      {
        name: 'but not for an interface that it does not request',
        given: { nads: [BLUE], pods: [livePod('a/p', { has: { 'a/blue': ['10.0.0.5'] }, asks: ['a/red', 'a/blue'] })] },
        expect: [POOL, left],
      },
      {
        name: 'but not if an IPPool names no pod and another pod requests the interface',
        given: {
          nads: [BLUE],
          ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: { id: 'c1' } })],
          pods: [owner, livePod('x/other', { has: { 'a/blue': ['10.0.0.5'] }, asks: ['x/blue'] })],
        },
        expect: [POOL, lease, left],
      },
      {
        name: 'for one address of an interface',
        given: { nads: [BLUE], pods: [livePod('a/p', { has: { 'a/blue': ['10.0.0.5', '10.0.0.6'] } })] },
        expect: [POOL, lease, 'left out 10.0.0.6: unconfirmed'],
      },
      {
        name: 'for one address of each range',
        given: {
          nads: [whereaboutsNad('a/blue', { ipRanges: [{ range: '10.0.0.0/24' }, { range: '10.0.1.0/24' }] })],
          pods: [livePod('a/p', { has: { 'a/blue': ['10.0.0.5', '10.0.1.5'] } })],
        },
        expect: [POOL, lease, 'create blue.10-0-1-5 of blue.a for Pod p'],
      },
    ]);
  });

  describe('for a pod whose name an earlier pod had', () => {
    const ipPools = [
      ipPool('10.0.0.0-24', '10.0.0.0/24', {
        5: { id: 'old', podref: 'a/p', ifname: 'net1' },
        6: { id: 'new', podref: 'a/p', ifname: 'net1' },
      }),
    ];
    itPlansMigrations([
      {
        name: 'leases nothing before the pod reports its address',
        given: { nads: [BLUE], ipPools, pods: [livePod('a/p')] },
        expect: [POOL, ...['5', '6'].map((last) => `conflict address: 10.0.0.${last} in address space blue`)],
      },
      {
        name: 'leases the reported address',
        given: { nads: [BLUE], ipPools, pods: [livePod('a/p', { has: { 'a/blue': ['10.0.0.6'] } })] },
        expect: [POOL, 'create blue.10-0-0-6 of blue.a for Pod p', 'left out 10.0.0.5: stale'],
      },
      {
        name: 'leases its own address to each interface',
        given: {
          nads: [BLUE],
          ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p', 6: { id: 'c', podref: 'a/p', ifname: 'net2' } })],
          pods: [livePod('a/p')],
        },
        expect: [POOL, ...['5', '6'].map((last) => `create blue.10-0-0-${last} of blue.a for Pod p`)],
      },
    ]);
  });

  describe('respects claims', () => {
    const given = {
      nads: [
        whereaboutsNad('a/blue', { range: '10.0.0.0/24', network_name: 'na' }),
        whereaboutsNad('b/blue', { range: '10.0.0.0/24', network_name: 'nb' }),
      ],
      ipPools: [ipPool('na-10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })],
      pods: [livePod('a/p')],
    };
    const pools = ['create pool blue.a', 'create pool blue.b'];
    const lease = 'create na.10-0-0-5 of blue.a for Pod p';
    const conflict = 'conflict claim: 10.0.0.5 in address space na';
    itPlansMigrations([
      {
        name: 'but not those of a network of the same name in another address space',
        given: { ...given, claims: [claim('b/vm.data')] },
        expect: [...pools, lease],
      },
      {
        name: 'of another namespace by their NAD',
        given: { ...given, claims: [claim('b/vm.data', { nad: 'a/blue' })] },
        expect: [...pools, conflict],
      },
      {
        name: 'if several have one address',
        given: { ...given, claims: [claim('a/other'), claim('a/vm.data', { owner: 'p' })] },
        expect: [...pools, conflict],
      },
    ]);
  });

  it('leases to a static pod with the UID that the kubelet gave it', () => {
    const { metadata } = livePod('a/p', { has: { 'a/blue': ['10.0.0.5'] } });
    const pod = mirrorPod('mirror-1', { namespace: 'a', name: 'p', annotations: metadata.annotations! });
    const [lease] = planMigration(observedOf({ nads: [BLUE], pods: [pod] })).leases;
    expect(lease?.request.owner.uid).to.equal(STATIC_UID);
  });
});
