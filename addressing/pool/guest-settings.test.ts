import { expect } from 'chai';
import type { GuestOptions } from '../../api/address-pool.js';
import { formatAddress } from '../address/address.js';
import { formatCidr } from '../address/cidr.js';
import { guestSettings } from './guest-settings.js';
import { compilePool } from './pool.js';

const SUBNETS = [{ cidr: '10.1.0.0/24', gateway: '10.1.0.1' }];
const NAD = {
  mtu: 1400,
  dns: { nameservers: ['10.9.0.53', 'x'], search: ['example.com', 'a b'] },
  routes: [
    { destination: '10.8.0.0/16', gateway: '10.1.0.2' },
    { destination: '10.7.0.0/16' },
    { destination: '0.0.0.0/0', gateway: '10.1.0.2' },
    { destination: '10.6.0.0/16', gateway: '10.2.0.1' },
    { destination: '10.5.0.1/16', gateway: '10.1.0.2' },
    { destination: 'fd00:9::/32' },
  ],
};

function settings(guest: GuestOptions | undefined, nad = {}, subnets = SUBNETS) {
  const compiled = compilePool({
    metadata: { name: 'blue' },
    spec: { network: 'blue', subnets, ...(guest && { guest }) },
  });
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problems));
  const { nameservers, search, ntp, routes, mtu } = guestSettings(compiled.pool, nad);
  return {
    mtu,
    nameservers: nameservers.map(formatAddress),
    search,
    ntp: ntp.map(formatAddress),
    routes: routes.map(({ destination, gateway }) => `${formatCidr(destination)} via ${formatAddress(gateway)}`),
  };
}

describe('the settings of guests', () => {
  it('are those of the NAD if the pool has none, without those that cannot be used', () => {
    const expected = {
      mtu: 1400,
      nameservers: ['10.9.0.53'],
      search: ['example.com'],
      ntp: [],
      routes: ['10.8.0.0/16 via 10.1.0.2', '10.7.0.0/16 via 10.1.0.1'],
    };
    expect(settings({}, NAD)).to.deep.equal(expected);
    // a pool without spec.guest, whose VMs get network data on NADs with IPAM
    expect(settings(undefined, NAD)).to.deep.equal(expected);
  });

  it('of the pool replace those of the NAD as a whole', () => {
    const routes = [{ destination: '10.5.0.0/16', gateway: '10.1.0.9' }];
    const guest = { dns: { search: ['corp.example'] }, ntp: ['10.9.0.123'], routes, mtu: 9000 };
    expect(settings(guest, NAD)).to.deep.equal({
      mtu: 9000,
      nameservers: [],
      search: ['corp.example'],
      ntp: ['10.9.0.123'],
      routes: ['10.5.0.0/16 via 10.1.0.9'],
    });
    expect(settings({ routes: [] }, NAD).routes).to.deep.equal([]);
  });

  it('have no MTU of a NAD that is too small for IPv6', () => {
    expect(settings({}, { mtu: 1279 }).mtu).to.equal(1279);
    expect(settings({}, { mtu: 1279 }, [{ cidr: 'fd00:1::/64', gateway: 'fd00:1::1' }]).mtu).to.equal(undefined);
  });
});
