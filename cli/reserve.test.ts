import { expect } from 'chai';
import { ADDRESS_LEASES, IPAM_CLAIMS } from '../kube/resources.js';
import type { AddressLease } from '../api/address-lease.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { parseAddress } from '../addressing/address/address.js';
import { leaseName } from '../addressing/lease/lease-name.js';
import type { ListOptions } from '../kube/client.js';
import { StatusError } from '../kube/errors.js';
import { adminPool, claimOf } from '../test/objects/pool-objects.js';
import { leaseOf } from '../test/objects/lease-objects.js';
import { MigrationCluster, observedOf } from './testing/migration-world.js';
import { CommandError } from './exit-code.js';
import { type Reservation, reserve, unreserve } from './reserve.js';

const MAC = '02:00:00:00:00:01';
const POD = { kind: 'Pod', namespace: 'a', name: 'p', uid: 'u' } as const;
const POOL = adminPool('office', {
  network: 'lan',
  subnets: [{ cidr: '10.0.0.0/24', gateway: '10.0.0.1', reserved: ['10.0.0.9'] }],
});

function reservedLease(spec: Partial<AddressLease['spec']> = {}): AddressLease {
  return {
    metadata: { name: 'lan.10-0-0-5', uid: 'u', resourceVersion: '1' },
    spec: { address: '10.0.0.5', addressSpace: 'lan', pool: 'office', ...spec },
  };
}

/** Of another address, for the same MAC address. */
function anotherLease(address: string, spec: Partial<AddressLease['spec']> = {}): AddressLease {
  const name = leaseName('lan', parseAddress(address));
  return { ...reservedLease({ address, mac: MAC, ...spec }), metadata: { name, uid: 'v', resourceVersion: '1' } };
}

/** A claim that shows addresses. */
function claimWith(ips: string[], { namespace = 'a', network = 'lan' } = {}): IPAMClaim {
  return { ...claimOf(`${namespace}/vm1.data`, undefined, network), status: { ips } };
}

/** Of the same address space as {@link POOL}. */
const OTHER_NETWORK = adminPool('other', {
  network: 'lan2',
  addressSpace: 'lan',
  namespaces: ['served'],
  subnets: [{ cidr: '10.0.0.0/24' }],
});
const BAD = { ...POOL, metadata: { name: 'bad' }, spec: { network: 'x', subnets: [] } };

function world(...leases: AddressLease[]): MigrationCluster {
  return new MigrationCluster(observedOf({ pools: [POOL, OTHER_NETWORK, BAD], leases }));
}

const of5 = { pool: 'office', address: '10.0.0.5' };

describe('a reservation', () => {
  const kept: { name: string; given: Reservation; expect: object }[] = [
    {
      name: 'for a MAC address in any notation',
      given: { ...of5, mac: '02-00-00-00-00-01' },
      expect: {
        metadata: {
          name: 'lan.10-0-0-5',
          labels: {
            'ipam.holdfast.dev/pool': 'office',
            'ipam.holdfast.dev/family': 'IPv4',
            'ipam.holdfast.dev/mac': '02-00-00-00-00-01',
          },
        },
        spec: { address: '10.0.0.5', addressSpace: 'lan', pool: 'office', mac: MAC },
      },
    },
    {
      name: 'for nobody',
      given: { ...of5, address: '10.0.0.9' },
      expect: {
        metadata: {
          name: 'lan.10-0-0-9',
          labels: { 'ipam.holdfast.dev/pool': 'office', 'ipam.holdfast.dev/family': 'IPv4' },
        },
        spec: { address: '10.0.0.9', addressSpace: 'lan', pool: 'office' },
      },
    },
  ];
  for (const { name, given, expect: expected } of kept) {
    it(`is created ${name}`, async () => {
      const cluster = world();
      expect(await reserve(given, cluster.client)).to.match(/ reserved$/);
      const [lease] = cluster.all(ADDRESS_LEASES);
      const { uid: _uid, resourceVersion: _version, creationTimestamp: _time, ...metadata } = lease!.metadata;
      expect({ metadata, spec: lease!.spec }).to.deep.equal(expected);
    });
  }

  it('is created once by repeated commands', async () => {
    const cluster = world(reservedLease({ mac: MAC }));
    expect(await reserve({ ...of5, mac: MAC.toUpperCase() }, cluster.client)).to.match(/unchanged$/);
    expect(cluster.all(ADDRESS_LEASES)).to.have.length(1);
  });

  it('is created for a MAC address that uses another address, or has one of the other family', async () => {
    const cluster = world(anotherLease('10.0.0.7', { owner: POD }), anotherLease('fd00::7'));
    const asked: (ListOptions | undefined)[] = [];
    const client = cluster.client;
    const list = client.list.bind(client);
    client.list = (resource, options) => {
      asked.push(options);
      return list(resource, options);
    };
    expect(await reserve({ ...of5, mac: MAC }, client)).to.match(/ reserved$/);
    expect(asked[0]).to.deep.equal({ fieldSelector: `spec.mac=${MAC},spec.pool=office,spec.addressSpace=lan` });
  });

  for (const [where, of] of [
    ['its network', {}],
    ['another network of the address space', { namespace: 'served', network: 'lan2' }],
  ] as const) {
    it(`is refused if a claim of ${where} shows the address and has lost its lease`, async () => {
      const cluster = world().put(IPAM_CLAIMS, claimWith(['fd00::5/64', '10.0.0.5/24'], of));
      for (const given of [of5, { ...of5, mac: MAC }]) {
        const refusal = await reserve(given, cluster.client).catch((error: unknown) => error);
        expect((refusal as CommandError).message).to.equal(
          `IPAMClaim ${'namespace' in of ? of.namespace : 'a'}/vm1.data has 10.0.0.5 in its status, and no lease for it: ipam leases it to the claim again. Reserve another address, or delete the VM of the claim first`,
        );
      }
      expect(cluster.writes).to.equal(0);
    });
  }

  it('is created if claims show other addresses, or the same in another address space', async () => {
    const cluster = world().put(
      IPAM_CLAIMS,
      claimWith(['10.0.0.6', 'none']),
      claimWith(['10.0.0.5'], { namespace: 'b', network: 'wan' }),
      claimWith(['10.0.0.5'], { namespace: 'c', network: 'lan2' }),
    );
    expect(await reserve(of5, cluster.client)).to.match(/ reserved$/);
  });

  it('is not created for a user who may not list claims', async () => {
    const cluster = world();
    cluster.refused.add('ipamclaims');
    const refusal = await reserve(of5, cluster.client).catch((error: unknown) => error);
    expect((refusal as Error).message).to.include('cannot list resource "ipamclaims"');
    expect(cluster.writes).to.equal(0);
  });

  const refused: { name: string; given: Partial<Reservation>; leases?: AddressLease[]; expect: string }[] = [
    { name: 'its address is invalid', given: { address: '10.0.0.300' }, expect: '"10.0.0.300" is not an IP address' },
    { name: 'its pool does not exist', given: { pool: 'none' }, expect: 'AddressPool none does not exist' },
    { name: 'its pool is invalid', given: { pool: 'bad' }, expect: 'AddressPool bad is invalid: spec.subnets' },
    {
      name: 'its address is not in the pool',
      given: { address: '10.1.0.5' },
      expect: '10.1.0.5 is in no subnet of AddressPool office (10.0.0.0/24)',
    },
    {
      name: 'its address is the gateway',
      given: { address: '10.0.0.1' },
      expect: '10.0.0.1 is the gateway of pool office: no workload can lease it',
    },
    { name: 'its MAC address is invalid', given: { mac: '02:00' }, expect: '"02:00" is not a MAC address' },
    {
      name: 'its MAC address is a multicast address',
      given: { mac: '01:00:5E:00:00:01' },
      expect: '01:00:5E:00:00:01 is a multicast MAC address',
    },
    {
      name: 'the MAC address has a reservation of the same family',
      given: { mac: MAC },
      leases: [anotherLease('10.0.0.7')],
      expect: `AddressPool office already reserves 10.0.0.7 for ${MAC}, and a MAC address gets one IPv4 address of a pool: run kubectl holdfast unreserve office 10.0.0.7 first`,
    },
    {
      name: 'the MAC address has a reservation of the same family that is in use',
      given: { mac: MAC },
      leases: [anotherLease('10.0.0.7', { reserved: true, owner: POD })],
      expect: 'kubectl holdfast unreserve office 10.0.0.7 first',
    },
    {
      name: 'its address is leased',
      given: {},
      leases: [{ ...leaseOf('10.0.0.5', 1), ...reservedLease({ owner: POD }) }],
      expect: '10.0.0.5 is leased to Pod a/p',
    },
    {
      name: 'its address has another reservation',
      given: {},
      leases: [reservedLease({ mac: MAC })],
      expect: `10.0.0.5 has another reservation, for ${MAC}`,
    },
    {
      name: 'its address is quarantined',
      given: {},
      leases: [
        reservedLease({ quarantine: { since: '2030-01-01T00:00:00Z', until: '2030-01-01T01:00:00Z', mac: MAC } }),
      ],
      expect: `10.0.0.5 is quarantined, because ${MAC} has it: remove that host`,
    },
  ];
  for (const { name, given, leases = [], expect: words } of refused) {
    it(`is refused if ${name}`, async () => {
      const cluster = world(...leases);
      const refusal = await reserve({ ...of5, ...given }, cluster.client).catch((error: unknown) => error);
      expect(refusal).to.be.instanceOf(CommandError);
      expect((refusal as CommandError).message).to.include(words);
      expect(cluster.writes).to.equal(0);
    });
  }

  it('fails with advice if the API server does not serve pools', async () => {
    const error = new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: 'page not found' });
    const cluster = world();
    cluster.before = () => Promise.reject(error);
    for (const attempt of [reserve(of5, cluster.client), unreserve(of5, cluster.client)]) {
      const refusal = await attempt.catch((thrown: unknown) => thrown);
      expect(refusal).to.be.instanceOf(CommandError);
      expect((refusal as CommandError).message).to.match(
        /does not serve addresspools\.ipam\.holdfast\.dev: install Holdfast first$/,
      );
    }
  });

  it('is removed by unreserve, which frees the address', async () => {
    const cluster = world(reservedLease());
    expect(await unreserve(of5, cluster.client)).to.match(/the address is free$/);
    expect(cluster.all(ADDRESS_LEASES)).to.deep.equal([]);
  });

  for (const [name, leases, words] of [
    ['there is none', [], 'AddressLease lan.10-0-0-5 does not exist'],
    ['its address is in use', [reservedLease({ reserved: true, mac: MAC, owner: POD })], 'Pod a/p has 10.0.0.5'],
    [
      'the address has an ordinary lease',
      [reservedLease({ owner: POD })],
      '10.0.0.5 is not reserved but leased to Pod a/p: there is nothing to unreserve',
    ],
    [
      'the address cools down after an ordinary lease',
      [reservedLease({ owner: POD, releasedAt: '2026-01-01T00:00:00Z' })],
      'leased to Pod a/p, and cools down: there is nothing to unreserve',
    ],
    [
      'its address is quarantined',
      [reservedLease({ quarantine: { since: '2030-01-01T00:00:00Z', until: '2030-01-01T01:00:00Z', mac: MAC } })],
      `10.0.0.5 is not reserved but quarantined, because ${MAC} has it`,
    ],
    [
      'it belongs to another pool',
      [reservedLease({ pool: 'offcie' })],
      'AddressLease lan.10-0-0-5 reserves 10.0.0.5 for AddressPool offcie, not for office',
    ],
  ] as const) {
    it(`is not removed if ${name}`, async () => {
      const cluster = world(...leases);
      const refusal = await unreserve(of5, cluster.client).catch((error: unknown) => error);
      expect((refusal as CommandError).message).to.include(words);
      expect(cluster.all(ADDRESS_LEASES)).to.have.length(leases.length);
    });
  }
});
