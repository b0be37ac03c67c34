import { expect } from 'chai';
import type { AddressPool, AddressPoolSpec, PoolSubnet } from '../../api/address-pool.js';
import { type Family, formatAddress, parseAddress } from '../address/address.js';
import { type LeasableSet, type Pool, addressesOf, compilePool, parseDuration, subnetOf, withPrefix } from './pool.js';

function makePool(spec: Partial<AddressPoolSpec>): AddressPool {
  return {
    metadata: { name: 'blue', uid: 'u1' },
    spec: { network: 'blue', subnets: [{ cidr: '10.0.0.0/24' }], ...spec },
  };
}

function compiled(spec: Partial<AddressPoolSpec>): Pool {
  const result = compilePool(makePool(spec));
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.pool;
}

/** Ranges as text. */
function shown(pool: Pool, family: Family, which: LeasableSet): string[] {
  const format = (value: bigint): string => formatAddress({ family, value });
  return addressesOf(pool, family, which).ranges.map(({ first, last }) => `${format(first)}-${format(last)}`);
}

describe('compilePool', () => {
  it('parses all fields of a spec', () => {
    const pool = compiled({
      addressSpace: 'Shared_1',
      subnets: [{ cidr: '2001:db8::/64' }, { cidr: '10.0.0.0/24', gateway: '10.0.0.1' }],
      cooldownSeconds: 90,
      stickyMAC: { ttl: '1h30m', retain: true },
      blockSize: { ipv4: 28 },
      nodeSelector: { wired: 'yes' },
      publishCapacity: true,
      publishMetrics: false,
      namespaces: ['a', 'b'],
    });
    const { subnets, ...rest } = pool;
    expect(rest).to.deep.equal({
      name: 'blue',
      uid: 'u1',
      network: 'blue',
      addressSpace: 'Shared_1',
      families: [4, 6],
      cooldownMs: 90_000,
      stickyMs: 5_400_000,
      isStickyForClaims: true,
      blockSize: { 4: 28, 6: 122 },
      nodeSelector: { wired: 'yes' },
      publishesCapacity: true,
      publishesMetrics: false,
      namespaces: new Set(['a', 'b']),
    });
    expect(subnets.map(({ gateway }) => gateway)).to.deep.equal([undefined, parseAddress('10.0.0.1')]);
  });

  it('uses defaults for absent fields', () => {
    const { subnets: _subnets, ...rest } = compiled({});
    expect(rest).to.deep.equal({
      name: 'blue',
      uid: 'u1',
      network: 'blue',
      addressSpace: 'blue',
      families: [4],
      cooldownMs: 0,
      stickyMs: 0,
      isStickyForClaims: false,
      blockSize: { 4: 26, 6: 122 },
      publishesCapacity: false,
      publishesMetrics: true,
    });
  });

  const leasable: { name: string; subnet: PoolSubnet; open: string[]; requestable?: string[] }[] = [
    { name: 'all addresses but network and broadcast', subnet: { cidr: '10.0.0.0/24' }, open: ['10.0.0.1-10.0.0.254'] },
    { name: 'two addresses of a /30', subnet: { cidr: '10.0.0.4/30' }, open: ['10.0.0.5-10.0.0.6'] },
    { name: 'both addresses of a /31', subnet: { cidr: '10.0.0.4/31' }, open: ['10.0.0.4-10.0.0.5'] },
    { name: 'the address of a /32', subnet: { cidr: '10.0.0.4/32' }, open: ['10.0.0.4-10.0.0.4'] },
    {
      name: 'all addresses of an IPv6 subnet but the subnet-router anycast address',
      subnet: { cidr: '2001:db8::/64' },
      open: ['2001:db8::1-2001:db8::ffff:ffff:ffff:ffff'],
    },
    { name: 'three addresses of a /126', subnet: { cidr: '2001:db8::4/126' }, open: ['2001:db8::5-2001:db8::7'] },
    { name: 'both addresses of a /127', subnet: { cidr: '2001:db8::4/127' }, open: ['2001:db8::4-2001:db8::5'] },
    { name: 'the address of a /128', subnet: { cidr: '2001:db8::4/128' }, open: ['2001:db8::4-2001:db8::4'] },
    {
      name: 'all addresses but the gateway',
      subnet: { cidr: '10.0.0.0/29', gateway: '10.0.0.3' },
      open: ['10.0.0.1-10.0.0.2', '10.0.0.4-10.0.0.6'],
    },
    {
      name: 'the ranges, without network and broadcast address',
      subnet: { cidr: '10.0.0.0/24', ranges: ['10.0.0.250-10.0.0.255', '10.0.0.0/30', '10.0.0.9'] },
      open: ['10.0.0.1-10.0.0.3', '10.0.0.9-10.0.0.9', '10.0.0.250-10.0.0.254'],
    },
    {
      name: 'no excluded address, not even on request',
      subnet: {
        cidr: '10.0.0.0/28',
        exclude: ['10.0.0.0/29', '10.0.0.7-10.0.0.9'],
        reserved: ['10.0.0.9', '10.0.0.10'],
      },
      open: ['10.0.0.11-10.0.0.14'],
      requestable: ['10.0.0.10-10.0.0.14'],
    },
    {
      name: 'reserved addresses only on request, inside and outside of the ranges',
      subnet: { cidr: '10.0.0.0/24', ranges: ['10.0.0.100-10.0.0.110'], reserved: ['10.0.0.10', '10.0.0.110'] },
      open: ['10.0.0.100-10.0.0.109'],
      requestable: ['10.0.0.10-10.0.0.10', '10.0.0.100-10.0.0.110'],
    },
    {
      name: 'neither the gateway nor the broadcast address, even if they are reserved',
      subnet: { cidr: '10.0.0.0/30', gateway: '10.0.0.1', reserved: ['10.0.0.0/30'] },
      open: [],
      requestable: ['10.0.0.2-10.0.0.2'],
    },
    {
      name: 'nothing if all addresses are excluded',
      subnet: { cidr: '10.0.0.0/24', exclude: ['10.0.0.0/24'] },
      open: [],
    },
  ];
  for (const { name, subnet, open, requestable = open } of leasable) {
    it(`leases ${name}`, () => {
      const pool = compiled({ subnets: [subnet] });
      const [family = 4] = pool.families;
      expect(shown(pool, family, 'open')).to.deep.equal(open);
      expect(shown(pool, family, 'requestable')).to.deep.equal(requestable);
    });
  }

  it('compiles huge subnets with hundreds of exclusions without iterating over addresses', () => {
    const exclude = Array.from({ length: 256 }, (_, i) => `10.${i}.7.0/24`);
    const reserved = Array.from({ length: 256 }, (_, i) => `10.${i}.9.1-10.${i}.9.3`);
    const pool = compiled({ subnets: [{ cidr: '10.0.0.0/8', exclude, reserved }, { cidr: 'fd00::/8' }] });
    expect(addressesOf(pool, 4, 'requestable').size).to.equal(2n ** 24n - 2n - 65_536n);
    expect(addressesOf(pool, 4, 'open').size).to.equal(2n ** 24n - 2n - 65_536n - 768n);
    expect(addressesOf(pool, 6, 'open').size).to.equal(2n ** 120n - 1n);
  });
});

describe('subnetOf', () => {
  const pool = compiled({ subnets: [{ cidr: '10.0.0.0/24' }, { cidr: '10.0.2.0/23' }, { cidr: '2001:db8::/64' }] });

  it('finds the subnet of an address that may not be leased', () => {
    expect(subnetOf(pool, parseAddress('10.0.3.255'))).to.equal(pool.subnets[1]);
    expect(subnetOf(pool, parseAddress('2001:db8::'))).to.equal(pool.subnets[2]);
    expect(subnetOf(pool, parseAddress('10.0.1.0'))).to.equal(undefined);
  });

  it('gives an address the prefix length of its subnet', () => {
    expect(withPrefix(pool, parseAddress('10.0.3.1'))).to.equal('10.0.3.1/23');
    expect(withPrefix(pool, parseAddress('2001:db8::5'))).to.equal('2001:db8::5/64');
  });

  it('gives an address outside of all subnets the full prefix length', () => {
    expect(withPrefix(pool, parseAddress('10.0.1.1'))).to.equal('10.0.1.1/32');
    expect(withPrefix(pool, parseAddress('2001:db9::5'))).to.equal('2001:db9::5/128');
  });
});

describe('parseDuration', () => {
  for (const [text, ms] of [
    ['24h', 86_400_000],
    ['1h30m', 5_400_000],
    ['24h0m0s', 86_400_000],
    ['90s', 90_000],
    ['5m500ms', 300_500],
    ['0s', 0],
  ] as const) {
    it(`parses ${text}`, () => expect(parseDuration(text)).to.equal(ms));
  }

  for (const text of ['', '24', '0', 'h', '-1h', '1.5h', '1d', '24 h', '24H', '1h ', '1234567h', '1µs', 'forever']) {
    it(`rejects "${text}"`, () => expect(parseDuration(text)).to.equal(undefined));
  }
});
