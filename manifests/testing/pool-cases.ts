import type { AddressPoolSpec, PoolSubnet } from '../../api/address-pool.js';

export const V4: PoolSubnet = { cidr: '10.1.0.0/24' };
export const V6: PoolSubnet = { cidr: 'fd00:1::/64' };

interface PoolCase {
  name: string;
  given: Partial<AddressPoolSpec>;
  /** Words of the refusal, each on its own; none: accepted. */
  expect?: string[];
}

const subnet = (more: Partial<PoolSubnet>) => ({ subnets: [{ ...V4, ...more }] });

/** Specs of pools, good and bad, and what the API server says to the bad ones. */
export const POOL_CASES: readonly PoolCase[] = [
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
      stickyMAC: { ttl: '1h30m', retain: true },
      blockSize: { ipv4: 27, ipv6: 124 },
      nodeSelector: { 'example.com/network': 'blue', zone: '' },
      publishCapacity: true,
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
  {
    name: 'no IPv4 block beyond a /16',
    given: { blockSize: { ipv4: 8 } },
    expect: ['spec.blockSize.ipv4', '16'],
  },
  {
    name: 'no IPv6 block of another length',
    given: { blockSize: { ipv6: 26 } },
    expect: ['spec.blockSize.ipv6', '64'],
  },
  {
    name: 'no block smaller than an address',
    given: { blockSize: { ipv4: 33 } },
    expect: ['spec.blockSize.ipv4', 'less than or equal to 32'],
  },
  {
    name: 'no IPv6 block smaller than an address',
    given: { blockSize: { ipv6: 129 } },
    expect: ['spec.blockSize.ipv6', 'less than or equal to 128'],
  },
  { name: 'blocks of one address', given: { blockSize: { ipv4: 32, ipv6: 128 } } },
  {
    name: 'no text for the size of a block',
    given: { blockSize: { ipv4: '26' as unknown as number } },
    expect: ['spec.blockSize.ipv4', 'must be of type integer'],
  },
  {
    name: 'no number for the label of a node',
    given: { nodeSelector: { rack: 5 as unknown as string } },
    expect: ['spec.nodeSelector.rack', 'must be of type string'],
  },
  {
    name: 'no yes for a switch',
    given: { publishCapacity: 'yes' as unknown as boolean },
    expect: ['spec.publishCapacity', 'must be of type boolean'],
  },
  {
    name: 'no retaining for ever',
    given: { stickyMAC: { retain: true } as { ttl: string; retain: boolean } },
    expect: ['spec.stickyMAC.ttl', 'Required value'],
  },
  { name: 'no ttl of nothing', given: { stickyMAC: { ttl: '0s' } }, expect: ['more than 0'] },
  {
    name: 'no pattern for a namespace',
    given: { namespaces: ['tenant-*'] },
    expect: ['spec.namespaces[0]', 'there are no patterns'],
  },
  { name: 'no list of no namespaces', given: { namespaces: [] }, expect: ['spec.namespaces', 'at least 1 items'] },
];

/** As much as the schema allows. */
export const LARGEST_POOL: Partial<AddressPoolSpec> = {
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
  nodeSelector: Object.fromEntries(Array.from({ length: 32 }, (_, n) => [`example.com/${n}`, 'x'.repeat(63)])),
  namespaces: Array.from({ length: 256 }, (_, n) => `tenant-${n}`),
};
