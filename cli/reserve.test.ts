import { expect } from 'chai';
import type { AddressLease } from '../api/address-lease.js';
import { parseAddress } from '../ipam/core/address.js';
import { leaseName } from '../ipam/core/lease-name.js';
import type { ListOptions } from '../kube/client.js';
import { StatusError } from '../kube/errors.js';
import { adminPool } from '../test/pool-objects.js';
import { leaseOf } from '../test/lease-objects.js';
import { MigrationCluster, observedOf } from './testing/migration-world.js';
import { CommandError } from './command-error.js';
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

function world(...leases: AddressLease[]): MigrationCluster {
  return new MigrationCluster(
    observedOf({ pools: [POOL, { ...POOL, metadata: { name: 'bad' }, spec: { network: 'x', subnets: [] } }], leases }),
  );
}

const of5 = { pool: 'office', address: '10.0.0.5' };

describe('an address that is reserved by hand', () => {
  const kept: { name: string; given: Reservation; expect: object }[] = [
    {
      name: 'for a MAC address, however that is written',
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
      name: 'from everybody',
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
    it(`is kept ${name}`, async () => {
      const cluster = world();
      expect(await reserve(given, cluster.client())).to.match(/ reserved$/);
      const [lease] = cluster.all('addressleases');
      const { uid: _uid, resourceVersion: _version, ...metadata } = lease!.metadata;
      expect({ metadata, spec: lease!.spec }).to.deep.equal(expected);
    });
  }

  it('is kept once, however often that is asked for', async () => {
    const cluster = world(reservedLease({ mac: MAC }));
    expect(await reserve({ ...of5, mac: MAC.toUpperCase() }, cluster.client())).to.match(/unchanged$/);
    expect(cluster.all('addressleases')).to.have.length(1);
  });

  it('is kept for a MAC address that has another one in use, or reserved of the other family', async () => {
    const cluster = world(anotherLease('10.0.0.7', { owner: POD }), anotherLease('fd00::7'));
    const asked: (ListOptions | undefined)[] = [];
    const client = cluster.client();
    const { list } = client;
    client.list = (resource, options) => {
      asked.push(options);
      return list(resource, options);
    };
    expect(await reserve({ ...of5, mac: MAC }, client)).to.match(/ reserved$/);
    expect(asked).to.deep.equal([{ fieldSelector: `spec.mac=${MAC},spec.pool=office,spec.addressSpace=lan` }]);
  });

  const refused: { name: string; given: Partial<Reservation>; leases?: AddressLease[]; expect: string }[] = [
    { name: 'is an address', given: { address: '10.0.0.300' }, expect: '"10.0.0.300" is not an IP address' },
    { name: 'has a pool', given: { pool: 'none' }, expect: 'there is no AddressPool none' },
    { name: 'has a pool that can be used', given: { pool: 'bad' }, expect: 'AddressPool bad is invalid: spec.subnets' },
    {
      name: 'lies in the pool',
      given: { address: '10.1.0.5' },
      expect: '10.1.0.5 is not in AddressPool office, which has 10.0.0.0/24',
    },
    {
      name: 'is nobody’s by the pool',
      given: { address: '10.0.0.1' },
      expect: 'AddressPool office leases 10.0.0.1 to nobody',
    },
    { name: 'is for a MAC address', given: { mac: '02:00' }, expect: '"02:00" is no MAC address' },
    {
      name: 'is for one interface',
      given: { mac: '01:00:5E:00:00:01' },
      expect: '01:00:5E:00:00:01 is the address of a group',
    },
    {
      name: 'is the only one of its family for the MAC address',
      given: { mac: MAC },
      leases: [anotherLease('10.0.0.7')],
      expect: `AddressPool office keeps 10.0.0.7 for ${MAC} already, and a MAC address gets one IPv4 address of a pool: kubectl holdfast unreserve office 10.0.0.7 first`,
    },
    {
      name: 'is the only one even while somebody has the other one',
      given: { mac: MAC },
      leases: [anotherLease('10.0.0.7', { reserved: true, owner: POD })],
      expect: 'kubectl holdfast unreserve office 10.0.0.7 first',
    },
    {
      name: 'is not somebody’s',
      given: {},
      leases: [
        {
          ...leaseOf('10.0.0.5', 1),
          ...reservedLease({ owner: POD }),
        },
      ],
      expect: '10.0.0.5 is leased to Pod a/p',
    },
    {
      name: 'is not reserved otherwise',
      given: {},
      leases: [reservedLease({ mac: MAC })],
      expect: `10.0.0.5 is reserved otherwise: for ${MAC}`,
    },
  ];
  for (const { name, given, leases = [], expect: words } of refused) {
    it(`${name}, or it is refused`, async () => {
      const cluster = world(...leases);
      const refusal = await reserve({ ...of5, ...given }, cluster.client()).catch((error: unknown) => error);
      expect(refusal).to.be.instanceOf(CommandError);
      expect((refusal as CommandError).message).to.include(words);
      expect(cluster.writes).to.equal(0);
    });
  }

  it('needs Holdfast in the cluster, and says so', async () => {
    const error = new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: 'page not found' });
    const client = { ...world().client(), get: () => Promise.reject(error) };
    for (const attempt of [reserve(of5, client), unreserve(of5, client)]) {
      const refusal = await attempt.catch((thrown: unknown) => thrown);
      expect(refusal).to.be.instanceOf(CommandError);
      expect((refusal as CommandError).message).to.match(
        /knows no addresspools\.ipam\.holdfast\.dev: install Holdfast first$/,
      );
    }
  });

  it('is free once it is let go', async () => {
    const cluster = world(reservedLease());
    expect(await unreserve(of5, cluster.client())).to.match(/the address is free$/);
    expect(cluster.all('addressleases')).to.deep.equal([]);
  });

  for (const [name, leases, words] of [
    ['none is kept', [], 'there is no AddressLease lan.10-0-0-5'],
    ['somebody has it', [reservedLease({ reserved: true, mac: MAC, owner: POD })], 'Pod a/p has 10.0.0.5'],
    [
      'it is leased as any other',
      [reservedLease({ owner: POD })],
      '10.0.0.5 is not reserved but leased to Pod a/p: there is nothing to unreserve',
    ],
    [
      'it cools down as any other',
      [reservedLease({ owner: POD, releasedAt: '2026-01-01T00:00:00Z' })],
      'leased to Pod a/p, and cools down: there is nothing to unreserve',
    ],
    [
      'it is reserved for another pool, or one that is misspelt',
      [reservedLease({ pool: 'offcie' })],
      'AddressLease lan.10-0-0-5 reserves 10.0.0.5 for AddressPool offcie, not for office',
    ],
  ] as const) {
    it(`is not let go where ${name}`, async () => {
      const cluster = world(...leases);
      const refusal = await unreserve(of5, cluster.client()).catch((error: unknown) => error);
      expect((refusal as CommandError).message).to.include(words);
      expect(cluster.all('addressleases')).to.have.length(leases.length);
    });
  }
});
