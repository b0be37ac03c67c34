import type { AddressPoolSpec, PoolSubnet } from '../../api/address-pool.js';
import { LARGEST_GUEST } from './guest-cases.js';

export const V4: PoolSubnet = { cidr: '10.1.0.0/24' };
export const V6: PoolSubnet = { cidr: 'fd00:1::/64' };

export interface PoolCase {
  name: string;
  given: Partial<AddressPoolSpec>;
  /** Parts of the message; absent if the spec is accepted. */
  expect?: string[];
}

const subnet = (more: Partial<PoolSubnet>) => ({ subnets: [{ ...V4, ...more }] });

/** Valid and invalid specs of pools, and the messages of the API server for the invalid ones. */
export const POOL_CASES: readonly PoolCase[] = [
  { name: 'one subnet', given: { subnets: [V4] } },
  {
    name: 'a guard',
    given: {
      guard: {
        mode: 'Enforce',
        migrationHold: false,
        allow: [
          { addresses: ['10.1.0.100', '10.1.1.0/24'], macs: ['00:00:5e:00:01:0a'], claims: ['vms/vm1.blue'] },
          { addresses: ['10.1.0.101-10.1.0.110'], onRequest: true },
        ],
      },
    },
  },
  {
    name: 'not a guard of another mode',
    given: { guard: { mode: 'On' as 'Off' } },
    expect: ['spec.guard.mode', '"Off", "Observe", "Enforce"'],
  },
  {
    name: 'not allowed addresses without a guard',
    given: { guard: { allow: [{ addresses: ['10.1.0.100'] }] } },
    expect: ['spec.guard.allow', 'has no effect while mode is Off'],
  },
  {
    name: 'no allowed addresses that are not addresses',
    given: { guard: { mode: 'Observe', allow: [{ addresses: ['all'] }] } },
    expect: ['spec.guard.allow[0].addresses[0]', 'is not an address, CIDR or range'],
  },
  {
    name: 'no allowed MAC address of a group',
    given: { guard: { mode: 'Observe', allow: [{ addresses: ['10.1.0.1'], macs: ['01:00:5e:00:00:01'] }] } },
    expect: ['spec.guard.allow[0].macs[0]'],
  },
  {
    name: 'all fields',
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
      publishMetrics: false,
      namespaces: ['tenant-a'],
    },
  },
  { name: 'subnets of one address', given: { subnets: [{ cidr: '10.1.0.7/32' }, { cidr: 'fd00::1/128' }] } },
  { name: 'any valid name of a CNI network', given: { network: `Blue_Net.${'x'.repeat(244)}` } },
  { name: 'not an empty name of the network', given: { network: '' }, expect: ['spec.network', 'at least 1 chars'] },
  {
    name: 'not a slash in the name of the network',
    given: { network: 'a/b' },
    expect: ['network "a/b" is not a valid name of a CNI network', 'use letters'],
  },
  { name: 'not an empty list of subnets', given: { subnets: [] }, expect: ['spec.subnets', 'at least 1 items'] },
  { name: 'not one subnet twice', given: { subnets: [V4, V4] }, expect: ['spec.subnets[1]', 'Duplicate value'] },
  {
    name: 'not text instead of a CIDR',
    given: subnet({ cidr: 'blue' }),
    expect: ['spec.subnets[0].cidr', '"blue" is not a CIDR: write it like 10.1.0.0/16'],
  },
  { name: 'not an address as a CIDR', given: subnet({ cidr: '10.1.0.0' }), expect: ['"10.1.0.0" is not a CIDR'] },
  {
    name: 'not leading zeros in a CIDR',
    given: subnet({ cidr: '010.1.0.0/24' }),
    expect: ['"010.1.0.0/24" is not a CIDR', 'without leading zeros'],
  },
  { name: 'not a hexadecimal IPv4 CIDR', given: subnet({ cidr: '0x0a.1.0.0/24' }), expect: ['is not a CIDR'] },
  { name: 'not a zone in a CIDR', given: subnet({ cidr: 'fe80::%eth0/64' }), expect: ['is not a CIDR', 'zone'] },
  {
    name: 'not host bits in a CIDR',
    given: subnet({ cidr: '10.1.0.5/24' }),
    expect: ['spec.subnets[0].cidr', '10.1.0.5/24 has host bits'],
  },
  {
    name: 'not IPv4-mapped',
    given: subnet({ cidr: '::ffff:a01:0/120' }),
    expect: ['IPv4-mapped addresses are not supported'],
  },
  {
    name: 'not a subnet that contains the IPv4-mapped addresses',
    given: subnet({ cidr: '::8000:0:0/81' }),
    expect: ['contains the unspecified address or IPv4-mapped'],
  },
  { name: 'not all addresses', given: subnet({ cidr: '0.0.0.0/0' }), expect: ['contains the unspecified address'] },
  { name: 'not IPv4 multicast', given: subnet({ cidr: '239.1.0.0/16' }), expect: ['239.1.0.0/16 is multicast'] },
  { name: 'not IPv6 multicast', given: subnet({ cidr: 'ff02::/64' }), expect: ['ff02::/64 is multicast'] },
  { name: 'not loopback', given: subnet({ cidr: '127.0.0.0/24' }), expect: ['127.0.0.0/24 is multicast or loopback'] },
  {
    name: 'not an invalid range',
    given: subnet({ ranges: ['10.1.0.5', '10.1.0.5..10.1.0.9'] }),
    expect: ['spec.subnets[0].ranges[1]', '"10.1.0.5..10.1.0.9" is not an address, CIDR or range', '10.1.0.5-10.1.0.9'],
  },
  {
    name: 'not a range of three addresses',
    given: subnet({ ranges: ['10.1.0.5-10.1.0.6-10.1.0.7'] }),
    expect: ['is not an address, CIDR or range'],
  },
  {
    name: 'not a range with an abbreviated end',
    given: subnet({ exclude: ['10.1.0.5-9'] }),
    expect: ['spec.subnets[0].exclude[0]', 'is not an address'],
  },
  {
    name: 'not host bits in a CIDR of a range',
    given: subnet({ reserved: ['10.1.0.5/28'] }),
    expect: ['spec.subnets[0].reserved[0]', '10.1.0.5/28 has host bits'],
  },
  {
    name: 'not an address outside of the subnet',
    given: subnet({ ranges: ['10.1.0.9', '10.2.0.9'] }),
    expect: ['spec.subnets[0].ranges', '10.2.0.9 is not within cidr 10.1.0.0/24'],
  },
  {
    name: 'not a CIDR larger than the subnet',
    given: subnet({ exclude: ['10.1.0.0/16'] }),
    expect: ['spec.subnets[0].exclude', '10.1.0.0/16 is not within'],
  },
  {
    name: 'not a range that ends outside of the subnet',
    given: subnet({ reserved: ['10.1.0.250-10.1.1.5'] }),
    expect: ['spec.subnets[0].reserved', '10.1.0.250-10.1.1.5 is not within'],
  },
  {
    name: 'not a range of the other family',
    given: subnet({ ranges: ['fd00:1::5'] }),
    expect: ['fd00:1::5 is not within cidr 10.1.0.0/24'],
  },
  {
    name: 'not a gateway with a prefix length',
    given: subnet({ gateway: '10.1.0.1/24' }),
    expect: ['spec.subnets[0].gateway', 'without prefix length'],
  },
  {
    name: 'not a gateway outside of the subnet',
    given: subnet({ gateway: '10.2.0.1' }),
    expect: ['spec.subnets[0].gateway', '10.2.0.1 is not within cidr 10.1.0.0/24'],
  },
  { name: 'not IPv6 gateways in IPv4', given: subnet({ gateway: 'fe80::1' }), expect: ['fe80::1 is not within cidr'] },
  {
    name: 'not a cool-down longer than a day',
    given: { cooldownSeconds: 86_401 },
    expect: ['spec.cooldownSeconds', 'less than or equal to 86400'],
  },
  {
    name: 'not a ttl without a unit',
    given: { stickyMAC: { ttl: '24' } },
    expect: ['spec.stickyMAC.ttl', '"24" is not a duration greater than 0', '24h'],
  },
  { name: 'not IPv4 blocks over a /16', given: { blockSize: { ipv4: 8 } }, expect: ['spec.blockSize.ipv4', '16'] },
  { name: 'not IPv6 blocks over a /64', given: { blockSize: { ipv6: 26 } }, expect: ['spec.blockSize.ipv6', '64'] },
  {
    name: 'not an IPv4 block smaller than one address',
    given: { blockSize: { ipv4: 33 } },
    expect: ['spec.blockSize.ipv4', 'less than or equal to 32'],
  },
  {
    name: 'not an IPv6 block smaller than one address',
    given: { blockSize: { ipv6: 129 } },
    expect: ['spec.blockSize.ipv6', 'less than or equal to 128'],
  },
  { name: 'blocks of one address', given: { blockSize: { ipv4: 32, ipv6: 128 } } },
  {
    name: 'not text for the size of a block',
    given: { blockSize: { ipv4: '26' as unknown as number } },
    expect: ['spec.blockSize.ipv4', 'must be of type integer'],
  },
  {
    name: 'not a number as the value of a node label',
    given: { nodeSelector: { rack: 5 as unknown as string } },
    expect: ['spec.nodeSelector.rack', 'must be of type string'],
  },
  {
    name: 'not "yes" instead of a boolean',
    given: { publishCapacity: 'yes' as unknown as boolean },
    expect: ['spec.publishCapacity', 'must be of type boolean'],
  },
  {
    name: 'not "no" to switch metrics off',
    given: { publishMetrics: 'no' as unknown as boolean },
    expect: ['spec.publishMetrics', 'must be of type boolean'],
  },
  {
    name: 'not retain without a ttl',
    given: { stickyMAC: { retain: true } as { ttl: string; retain: boolean } },
    expect: ['spec.stickyMAC.ttl', 'Required value'],
  },
  { name: 'not a ttl of 0', given: { stickyMAC: { ttl: '0s' } }, expect: ['greater than 0'] },
  {
    name: 'not a pattern for a namespace',
    given: { namespaces: ['tenant-*'] },
    expect: ['spec.namespaces[0]', 'patterns are not supported'],
  },
  { name: 'not an empty namespaces list', given: { namespaces: [] }, expect: ['spec.namespaces', 'at least 1 items'] },
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
  guest: LARGEST_GUEST,
  guard: {
    mode: 'Enforce',
    allow: Array.from({ length: 16 }, () => ({
      addresses: Array.from({ length: 16 }, (_, n) => `fd00:1:2:3:4:5:6:${n}-fd00:1:2:3:4:5:7:${n}`),
      macs: Array.from({ length: 4 }, () => '00:00:5e:00:01:0a'),
      claims: Array.from({ length: 64 }, (_, n) => `${'a'.repeat(63)}/${'b'.repeat(250)}${n}`),
    })),
  },
};
