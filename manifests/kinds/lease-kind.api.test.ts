import { expect } from 'chai';
import type { AddressLease, AddressLeaseSpec, LeaseOwner, LeaseQuarantine } from '../../api/address-lease.js';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { type Address, parseAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { createLease } from '../../addressing/lease/lease.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { expectSchemaResult, readTable, useServerWithKind } from '../testing/kind-server.js';
import { LEASE_CHANGES } from '../../test/objects/lease-changes.js';

const NAME = 'blue.10-1-0-17';
const V6_NAME = 'blue.fd00-0001-0000-0000-0000-0000-0000-0005';
const VM1: LeaseOwner = { kind: 'IPAMClaim', namespace: 'a', name: 'vm1.blue', uid: 'claim-1', workloadUID: 'vm-1' };
const VM2: LeaseOwner = { kind: 'IPAMClaim', namespace: 'b', name: 'vm2.blue', uid: 'claim-2' };
const MAC = '02:00:00:00:00:ab';
const RELEASED = '2026-01-01T00:00:00Z';
const QUARANTINE: LeaseQuarantine = { since: RELEASED, until: '2026-01-01T01:00:00Z', mac: MAC };

function lease(name: string, spec: Partial<AddressLeaseSpec> = {}): AddressLease {
  return { metadata: { name }, spec: { address: '10.1.0.17', addressSpace: 'blue', pool: 'blue', ...spec } };
}

const CASES: { name: string; given: AddressLease; expect?: string[] }[] = [
  { name: 'held', given: lease(NAME, { owner: VM1 }) },
  { name: 'reserved for a MAC address', given: lease(NAME, { mac: MAC }) },
  { name: 'reserved again after a release', given: lease(NAME, { mac: MAC, reserved: true }) },
  {
    name: 'not quarantined with an owner',
    given: lease(NAME, { owner: VM1, quarantine: QUARANTINE }),
    expect: ['spec.quarantine', 'a quarantined address belongs to nobody'],
  },
  {
    name: 'not quarantined for a MAC address in capitals',
    given: lease(NAME, { quarantine: { ...QUARANTINE, mac: '02:00:00:00:00:AB' } }),
    expect: ['spec.quarantine.mac', '"02:00:00:00:00:AB" is not a MAC address', 'lower case'],
  },
  {
    name: 'not quarantined without an end',
    given: lease(NAME, { quarantine: { since: RELEASED, mac: MAC } as LeaseQuarantine }),
    expect: ['spec.quarantine.until', 'Required'],
  },
  {
    name: 'not marked as reserved without a MAC address',
    given: lease(NAME, { reserved: true }),
    expect: ['spec.reserved', 'set mac too'],
  },
  {
    name: 'not marked with reserved: false',
    given: lease(NAME, { mac: MAC, reserved: false as unknown as true }),
    expect: ['spec.reserved', 'reserved must be true or absent'],
  },
  {
    name: 'created with all fields about their use',
    given: lease(NAME, { owner: VM2, node: 'n1', containerID: 'c1', interface: 'pod16367aacb67', mac: MAC }),
  },
  { name: 'created for an IPv6 address', given: lease(V6_NAME, { address: 'fd00:1::5' }) },
  {
    name: 'not created for an invalid address',
    given: lease('blue.10-1-0-300', { address: '10.1.0.300' }),
    expect: ['spec.address', '"10.1.0.300" is not an IP address'],
  },
  {
    name: 'not created for an address with leading zeros',
    given: lease('blue.10-1-0-017', { address: '10.1.0.017' }),
    expect: ['without prefix length, leading zeros'],
  },
  {
    name: 'not created for an address with a prefix length',
    given: lease(NAME, { address: '10.1.0.17/24' }),
    expect: ['spec.address', 'without prefix length'],
  },
  {
    name: 'not created for an IPv4-mapped address',
    given: lease('blue.x', { address: '::ffff:10.1.0.17' }),
    expect: ['IPv4-mapped addresses are not supported'],
  },
  {
    name: 'not created for an address that is not canonical',
    given: lease(V6_NAME, { address: 'FD00:1:0::5' }),
    expect: ['spec.address', 'FD00:1:0::5 is not canonical'],
  },
  {
    name: 'not created under the name of another address',
    given: lease('blue.10-1-0-18'),
    expect: ['metadata.name blue.10-1-0-18 does not end in spec.address 10.1.0.17, name the lease blue.10-1-0-17'],
  },
  {
    name: 'not created under another name of an IPv6 address',
    given: lease('blue.fd00-1--5', { address: 'fd00:1::5' }),
    expect: ['does not end in spec.address fd00:1::5', 'in full, eight groups'],
  },
  { name: 'not named without address space', given: lease('10-1-0-17'), expect: ['does not end in spec.address'] },
  {
    name: 'not created under the name of another address space',
    given: lease('red.10-1-0-17'),
    expect: [
      'metadata.name red.10-1-0-17 does not begin with spec.addressSpace blue',
      'begin it with the address space',
    ],
  },
  {
    name: 'not created under the name of a longer address space',
    given: lease('blue.a.10-1-0-17'),
    expect: ['does not begin with spec.addressSpace blue'],
  },
  {
    name: 'not created under the plain name of an address space that needs a hash',
    given: lease('blue-net.10-1-0-17', { addressSpace: 'Blue_Net' }),
    expect: ['does not begin with spec.addressSpace Blue_Net', 'with a hash'],
  },
  {
    name: 'not created under the plain name of an address space with a label of 64 characters',
    given: lease(`${'l'.repeat(64)}.10-1-0-17`, { addressSpace: 'l'.repeat(64) }),
    expect: ['does not begin with spec.addressSpace', 'with a hash'],
  },
  {
    name: 'not created under the beginning of a longer address space',
    given: lease('blue.10-1-0-17', { addressSpace: 'blue.10-1-0-17' }),
    expect: ['does not begin with spec.addressSpace blue.10-1-0-17'],
  },
  {
    name: 'not created under the name of a shorter address space',
    given: lease('blues.10-1-0-17'),
    expect: ['does not begin with spec.addressSpace blue'],
  },
  {
    name: 'not created for an address without its dots',
    given: lease(NAME, { address: '10-1-0-17' }),
    expect: ['spec.address', '"10-1-0-17" is not an IP address'],
  },
  {
    name: 'created under the name of a long address space',
    given: lease('a-network-of-the-second-zone.10-1-0-17', { addressSpace: 'a-network-of-the-second-zone' }),
  },
  {
    name: 'not released without an owner',
    given: lease(NAME, { releasedAt: RELEASED }),
    expect: ['spec.releasedAt', 'set owner too'],
  },
  {
    name: 'not released at an invalid time',
    given: lease(NAME, { owner: VM1, releasedAt: 'today' }),
    expect: ['spec.releasedAt'],
  },
  {
    name: 'not allocated to an owner of another kind',
    given: lease(NAME, { owner: { ...VM1, kind: 'VirtualMachine' as 'Pod' } }),
    expect: ['spec.owner.kind', '"IPAMClaim", "Pod"'],
  },
  { name: 'not held without a UID', given: lease(NAME, { owner: { ...VM1, uid: '' } }), expect: ['spec.owner.uid'] },
  {
    name: 'not created with a MAC address in capitals',
    given: lease(NAME, { mac: '02:00:00:00:00:AB' }),
    expect: ['spec.mac', '"02:00:00:00:00:AB" is not a MAC address', 'lower case'],
  },
];

/** Valid and invalid leases, and the expected messages. */
const SPACES = [
  'blue',
  'a.b',
  'Blue_Net',
  'x'.repeat(253),
  'a..b',
  `blue-${'0'.repeat(16)}`,
  'f'.repeat(16),
  `${'l'.repeat(64)}.b`,
  `${'ab.'.repeat(70)}c`,
];
const ADDRESSES = [
  ...['0.0.0.0', '255.255.255.255', '10.1.0.17', '::', '::1', 'fe80::', 'fe80::1:0:0:1', '2001:db8:0:1:1:1:1:1'],
  ...['1:0:0:2:0:0:0:3', '::1.2.3.4', 'ffff::ffff'],
];

describe('AddressLeases, on a kube-apiserver', function () {
  let plane: ControlPlane;
  useServerWithKind(this, ADDRESS_LEASES, (started) => (plane = started));

  describe('may be', () => {
    for (const { name, given, expect: words } of CASES) {
      it(name, () => expectSchemaResult(plane.client.create(ADDRESS_LEASES, given, { dryRun: true }), words));
    }

    it('created under every name that the code computes, with every text that it writes', async () => {
      const random = Array.from({ length: 50 }, (_, i): Address => ({ family: 6, value: spread(i) }));
      const leases = SPACES.flatMap((addressSpace) =>
        [...ADDRESSES.map(parseAddress), ...random].map((address) =>
          createLease({ address, addressSpace, pool: 'p', owner: VM1 }),
        ),
      );
      for (const { object } of leases) await plane.client.create(ADDRESS_LEASES, object, { dryRun: true });
      expect(leases.length).to.be.greaterThan(500);
    });
  });

  describe('when they are updated', () => {
    for (const { name, from, to, expect: words } of LEASE_CHANGES) {
      it(name, async () => {
        await plane.client.create(ADDRESS_LEASES, lease(NAME, from));
        try {
          const patch = { type: 'merge', body: { spec: to } } as const;
          await expectSchemaResult(plane.client.patch(ADDRESS_LEASES, { name: NAME }, patch), words);
        } finally {
          await plane.client.delete(ADDRESS_LEASES, { name: NAME });
        }
      });
    }
  });

  it('can be selected by field and label, and show their owners in a table', async () => {
    const address = parseAddress('10.1.0.40');
    await writeLease(
      plane.client,
      createLease({ address, addressSpace: 'blue', pool: 'p1', owner: VM1, node: 'n1', mac: MAC }),
    );
    const name = leaseName('blue', address);
    const queries = [
      'spec.node=n1',
      'spec.pool=p1',
      'spec.node=n1,spec.addressSpace=blue',
      'spec.mac=02:00:00:00:00:ab,spec.pool=p1,spec.addressSpace=blue',
    ].map((fieldSelector) => ({ fieldSelector }));
    const selectors = [
      'pool=p1',
      'node=n1',
      'owner-uid=claim-1',
      'owner-namespace=a',
      'family=IPv4',
      'mac=02-00-00-00-00-ab',
    ];
    const byLabel = selectors.map((selector) => ({ labelSelector: `ipam.holdfast.dev/${selector}` }));
    for (const query of [...queries, ...byLabel]) {
      const { items } = await plane.client.list(ADDRESS_LEASES, query);
      expect(
        items.map(({ metadata }) => metadata.name),
        JSON.stringify(query),
      ).to.deep.equal([name]);
    }
    const { shown, rows } = await readTable(plane.client, ADDRESS_LEASES);
    expect(shown).to.deep.equal(['Name', 'Address', 'Pool', 'Kind', 'Namespace', 'Owner', 'Node', 'Released', 'Age']);
    expect(rows[0]?.slice(0, 7)).to.deep.equal([name, '10.1.0.40', 'p1', 'IPAMClaim', 'a', 'vm1.blue', 'n1']);
  });
});

/** Addresses with zero groups in all places: the bits of `i` say which groups are not zero. */
function spread(i: number): bigint {
  const pattern = (i * 37 + 1) % 256;
  return [0, 1, 2, 3, 4, 5, 6, 7].reduce(
    (value, bit) => (value << 16n) | (pattern & (1 << bit) ? BigInt(0x1f + i) : 0n),
    0n,
  );
}
