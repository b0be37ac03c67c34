import { join } from 'node:path';
import { expect } from 'chai';
import type { AddressPool, AddressPoolSpec, PoolSubnet } from '../api/address-pool.js';
import { startControlPlane } from '../e2e/bed/control-plane.js';
import type { ControlPlane } from '../e2e/bed/control-plane.js';
import { createAll, readManifests, resourceOf } from '../e2e/bed/objects.js';
import type { Manifest } from '../e2e/bed/objects.js';
import { MANIFESTS } from '../e2e/holdfast/manifests.js';
import { until } from '../e2e/story/wait.js';
import { compilePool } from '../ipam/core/pool.js';
import { ADDRESS_POOLS } from '../kube/resources.js';
import { refusalOf } from '../test/outcome.js';

const V4: PoolSubnet = { cidr: '10.1.0.0/24' };
const V6: PoolSubnet = { cidr: 'fd00:1::/64' };

interface Case {
  name: string;
  given: Partial<AddressPoolSpec>;
  /** Words of the refusal, each on its own; none: accepted. */
  expect?: string[];
}

const subnet = (more: Partial<PoolSubnet>) => ({ subnets: [{ ...V4, ...more }] });

const CASES: Case[] = [
  { name: 'one subnet', given: { subnets: [V4] } },
  {
    name: 'everything that there is',
    given: {
      addressSpace: 'Fabric_1.a',
      subnets: [
        {
          ...V4,
          ranges: ['10.1.0.10-10.1.0.99', '10.1.0.128/25', '10.1.0.5'],
          exclude: ['10.1.0.20', '10.1.0.24/29'],
          gateway: '10.1.0.1',
          reserved: ['10.1.0.200-10.1.0.210'],
        },
        { ...V6, gateway: 'fd00:1::1', exclude: ['fd00:1::-fd00:1::ff'] },
      ],
      cooldownSeconds: 60,
      stickyMAC: { ttl: '1h30m' },
      namespaces: ['tenant-a'],
    },
  },
  { name: 'subnets of one address', given: { subnets: [{ cidr: '10.1.0.7/32' }, { cidr: 'fd00::1/128' }] } },
  { name: 'a network with any name that CNI knows', given: { network: `Blue_Net.${'x'.repeat(244)}` } },
  { name: 'no network without a name', given: { network: '' }, expect: ['spec.network', 'at least 1 chars'] },
  {
    name: 'no network with a slash',
    given: { network: 'a/b' },
    expect: ['network "a/b" is no name of a CNI network', 'use letters'],
  },
  { name: 'no pool without subnets', given: { subnets: [] }, expect: ['spec.subnets', 'at least 1 items'] },
  {
    name: 'no subnet twice',
    given: { subnets: [V4, V4] },
    expect: ['spec.subnets[1]', 'Duplicate value'],
  },
  {
    name: 'no text for a CIDR',
    given: subnet({ cidr: 'blue' }),
    expect: ['spec.subnets[0].cidr', '"blue" is no CIDR: write it like 10.1.0.0/16'],
  },
  { name: 'no address for a CIDR', given: subnet({ cidr: '10.1.0.0' }), expect: ['"10.1.0.0" is no CIDR'] },
  {
    name: 'no leading zeros',
    given: subnet({ cidr: '010.1.0.0/24' }),
    expect: ['"010.1.0.0/24" is no CIDR', 'without leading zeros'],
  },
  { name: 'no hexadecimal IPv4', given: subnet({ cidr: '0x0a.1.0.0/24' }), expect: ['is no CIDR'] },
  { name: 'no zones', given: subnet({ cidr: 'fe80::%eth0/64' }), expect: ['is no CIDR', 'zone'] },
  {
    name: 'no host bits in a CIDR',
    given: subnet({ cidr: '10.1.0.5/24' }),
    expect: ['spec.subnets[0].cidr', '10.1.0.5/24 has host bits'],
  },
  {
    name: 'no IPv4-mapped subnet',
    given: subnet({ cidr: '::ffff:a01:0/120' }),
    expect: ['IPv4-mapped addresses are not supported'],
  },
  {
    name: 'no subnet around the IPv4-mapped ones',
    given: subnet({ cidr: '::8000:0:0/81' }),
    expect: ['contains the unspecified address or IPv4-mapped'],
  },
  {
    name: 'no subnet of everything',
    given: subnet({ cidr: '0.0.0.0/0' }),
    expect: ['contains the unspecified address'],
  },
  { name: 'no multicast', given: subnet({ cidr: '239.1.0.0/16' }), expect: ['239.1.0.0/16 is multicast'] },
  { name: 'no IPv6 multicast', given: subnet({ cidr: 'ff02::/64' }), expect: ['ff02::/64 is multicast'] },
  { name: 'no loopback', given: subnet({ cidr: '127.0.0.0/24' }), expect: ['127.0.0.0/24 is multicast or loopback'] },
  {
    name: 'no range that cannot be read',
    given: subnet({ ranges: ['10.1.0.5', '10.1.0.5..10.1.0.9'] }),
    expect: ['spec.subnets[0].ranges[1]', '"10.1.0.5..10.1.0.9" is no address, CIDR or range', '10.1.0.5-10.1.0.9'],
  },
  {
    name: 'no range of three',
    given: subnet({ ranges: ['10.1.0.5-10.1.0.6-10.1.0.7'] }),
    expect: ['is no address, CIDR or range'],
  },
  {
    name: 'no range with half an end',
    given: subnet({ exclude: ['10.1.0.5-9'] }),
    expect: ['spec.subnets[0].exclude[0]', 'is no address'],
  },
  {
    name: 'no host bits in a range',
    given: subnet({ reserved: ['10.1.0.5/28'] }),
    expect: ['spec.subnets[0].reserved[0]', '10.1.0.5/28 has host bits'],
  },
  {
    name: 'no address outside of the subnet',
    given: subnet({ ranges: ['10.1.0.9', '10.2.0.9'] }),
    expect: ['spec.subnets[0].ranges', '10.2.0.9 is not within cidr 10.1.0.0/24'],
  },
  {
    name: 'no CIDR around the subnet',
    given: subnet({ exclude: ['10.1.0.0/16'] }),
    expect: ['spec.subnets[0].exclude', '10.1.0.0/16 is not within'],
  },
  {
    name: 'no range that leaves the subnet',
    given: subnet({ reserved: ['10.1.0.250-10.1.1.5'] }),
    expect: ['spec.subnets[0].reserved', '10.1.0.250-10.1.1.5 is not within'],
  },
  {
    name: 'no range of the other family',
    given: subnet({ ranges: ['fd00:1::5'] }),
    expect: ['fd00:1::5 is not within cidr 10.1.0.0/24'],
  },
  {
    name: 'no gateway with a prefix',
    given: subnet({ gateway: '10.1.0.1/24' }),
    expect: ['spec.subnets[0].gateway', 'without prefix length'],
  },
  {
    name: 'no gateway outside of the subnet',
    given: subnet({ gateway: '10.2.0.1' }),
    expect: ['spec.subnets[0].gateway', '10.2.0.1 is not within cidr 10.1.0.0/24'],
  },
  {
    name: 'no gateway of the other family',
    given: subnet({ gateway: 'fe80::1' }),
    expect: ['fe80::1 is not within cidr'],
  },
  {
    name: 'no cool-down of days',
    given: { cooldownSeconds: 86_401 },
    expect: ['spec.cooldownSeconds', 'less than or equal to 86400'],
  },
  {
    name: 'no ttl without a unit',
    given: { stickyMAC: { ttl: '24' } },
    expect: ['spec.stickyMAC.ttl', '"24" is no duration', '24h'],
  },
  { name: 'no ttl of nothing', given: { stickyMAC: { ttl: '0s' } }, expect: ['more than 0'] },
  {
    name: 'no pattern for a namespace',
    given: { namespaces: ['tenant-*'] },
    expect: ['spec.namespaces[0]', 'there are no patterns'],
  },
  { name: 'no list of no namespaces', given: { namespaces: [] }, expect: ['spec.namespaces', 'at least 1 items'] },
];

const LARGEST: Partial<AddressPoolSpec> = {
  subnets: Array.from({ length: 16 }, (_, s) => ({
    cidr: `fd00:${s.toString(16)}::/64`,
    ranges: Array.from(
      { length: 64 },
      (_, r) => `fd00:${s.toString(16)}::${r.toString(16)}:0-fd00:${s.toString(16)}::${r.toString(16)}:ffff`,
    ),
    exclude: Array.from(
      { length: 256 },
      (_, e) => `fd00:${s.toString(16)}:0000:0000:0000:0000:0000:${e.toString(16).padStart(4, '0')}`,
    ),
    reserved: Array.from({ length: 256 }, (_, e) => `fd00:${s.toString(16)}::1:${e.toString(16)}`),
  })),
  namespaces: Array.from({ length: 256 }, (_, n) => `tenant-${n}`),
};

function pool(name: string, spec: Partial<AddressPoolSpec>): AddressPool {
  return { metadata: { name }, spec: { network: 'blue', subnets: [V4], ...spec } };
}

describe('AddressPools, on a kube-apiserver', function () {
  this.timeout(20_000);
  let plane: ControlPlane;

  before(async function () {
    this.timeout(15 * 60_000); // the first run builds the API server
    plane = await startControlPlane();
    await createAll(plane.client, await readManifests(join(MANIFESTS, 'crds', 'addresspools.yaml')));
    await until('pools are served', () => plane.client.list(ADDRESS_POOLS));
  });

  after(() => plane.stop());

  async function expectRefusal(attempt: Promise<unknown>, words: readonly string[]): Promise<void> {
    const { message } = await refusalOf(attempt);
    for (const word of words) expect(message).to.include(word);
    // a rule that fails for want of a guard says this, and nothing of use
    expect(message).not.to.match(/evaluation error|no such key/);
  }

  describe('may have', () => {
    for (const { name, given, expect: words } of CASES) {
      it(name, async () => {
        const attempt = plane.client.create(ADDRESS_POOLS, pool('blue', given), { dryRun: true });
        if (words === undefined) await attempt;
        else await expectRefusal(attempt, words);
        // what the server refuses by rule, the reconciler would not serve either, but for names that CNI refuses
        if (words?.some((word) => word.includes('CNI'))) return;
        expect(compilePool(pool('blue', given)).ok).to.equal(words === undefined);
      });
    }

    it('as much as the schema allows, at a price that the server accepts', async () => {
      await plane.client.create(ADDRESS_POOLS, pool('largest', LARGEST), { dryRun: true });
    });

    it('texts of twice the length, as far as the price goes: servers of other versions may count more strictly', async () => {
      const [definition] = await readManifests(join(MANIFESTS, 'crds', 'addresspools.yaml'));
      const twice = JSON.parse(
        JSON.stringify(definition, (key, value: unknown) => (key === 'maxLength' ? Number(value) * 2 : value)),
      ) as Manifest;
      await plane.client.patch(
        resourceOf(twice),
        { name: twice.metadata.name },
        { type: 'merge', body: twice },
        { dryRun: true },
      );
    });
  });

  describe('in their life', () => {
    beforeEach(() => plane.client.create(ADDRESS_POOLS, pool('green', { network: 'green' })));
    afterEach(() => plane.client.delete(ADDRESS_POOLS, { name: 'green' }));

    const changes: { name: string; to: Partial<AddressPoolSpec>; expect?: string[] }[] = [
      { name: 'get other subnets', to: { subnets: [V4, V6] } },
      {
        name: 'keep their network',
        to: { network: 'red' },
        expect: ['spec.network', 'network cannot change from green to red, create another pool'],
      },
      {
        name: 'keep their address space',
        to: { addressSpace: 'red' },
        expect: ['spec.addressSpace', 'addressSpace cannot change from green to red, create another pool'],
      },
      { name: 'may say which address space they have anyway', to: { addressSpace: 'green' } },
    ];
    for (const { name, to, expect: words } of changes) {
      it(name, async () => {
        const patch = { type: 'merge', body: { spec: to } } as const;
        const attempt = plane.client.patch(ADDRESS_POOLS, { name: 'green' }, patch);
        if (words === undefined) await attempt;
        else await expectRefusal(attempt, words);
      });
    }

    it('have a status that is written apart', async () => {
      const status = { capacity: 2 ** 53 - 1, leased: 1, heldByStopped: 0, cooling: 0, free: 5, reserved: 0 };
      const patch = { type: 'merge', body: { status, spec: { cooldownSeconds: 5 } } } as const;
      const ref = { name: 'green' };
      expect((await plane.client.patch(ADDRESS_POOLS, ref, patch)).status).to.equal(undefined);
      const body = { status, spec: { cooldownSeconds: 7 } };
      const after = await plane.client.patch(ADDRESS_POOLS, ref, { type: 'merge', body }, { subresource: 'status' });
      expect(after.status).to.deep.equal(status);
      expect(after.spec.cooldownSeconds).to.equal(5);
    });

    it('show how full they are', async () => {
      await plane.client.patch(
        ADDRESS_POOLS,
        { name: 'green' },
        { type: 'merge', body: { spec: { subnets: [V4, V6] } } },
      );
      const table = (await plane.client.transport.request({
        method: 'GET',
        path: '/apis/ipam.holdfast.dev/v1alpha1/addresspools',
        accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      })) as { columnDefinitions: { name: string; priority: number }[]; rows: { cells: unknown[] }[] };
      const shown = table.columnDefinitions.filter(({ priority }) => priority === 0).map(({ name }) => name);
      expect(shown).to.deep.equal([
        'Name',
        'Network',
        'Capacity',
        'Leased',
        'Free',
        'Stopped',
        'Cooling',
        'Ready',
        'Age',
      ]);
      const wide = table.rows.flatMap(({ cells }) => cells);
      expect(wide).to.include.members(['green', V4.cidr, V6.cidr]);
    });
  });
});
