import { expect } from 'chai';
import type { GuestOptions } from '../../api/address-pool.js';
import { POOL_NAD_NAMESPACE } from '../../api/names.js';
import { parseAddress } from '../address/address.js';
import { parseCidr } from '../address/cidr.js';
import { compilePool } from './pool.js';

function compile(guest: unknown, annotations?: Record<string, string>) {
  const subnets = [{ cidr: '10.1.0.0/24', gateway: '10.1.0.1' }];
  const metadata = { name: 'blue', ...(annotations && { annotations }) };
  return compilePool({ metadata, spec: { network: 'blue', subnets, guest: guest as GuestOptions } });
}

function problemsOf(guest: unknown, annotations?: Record<string, string>): string[] {
  const result = compile(guest, annotations);
  return result.ok ? [] : result.problems.map(({ field, message }) => `${field}: ${message}`);
}

describe('spec.guest of a pool', () => {
  it('is absent in a pool that serves no guests', () => {
    const result = compile(undefined);
    expect(result.ok && 'guest' in result.pool).to.equal(false);
  });

  it('leaves absent settings to the NAD, and has no NTP servers', () => {
    const result = compile({});
    expect(result.ok && result.pool.guest).to.deep.equal({ probe: false, isNetworkDataDefault: false, ntp: [] });
  });

  it('has short times before renewal and a long lease by default', () => {
    const result = compile({ attachment: 'blue', dhcp: { renewSeconds: 60 } });
    const dhcp = { renewSeconds: 60, rebindSeconds: 600, leaseSeconds: 86_400 };
    expect(result.ok && result.pool.guest).to.deep.include({ attachment: 'blue', dhcp });
  });

  it('keeps an empty list of routes, which replaces those of the NAD', () => {
    const result = compile({ routes: [], dns: {} });
    const dns = { nameservers: [], search: [] };
    expect(result.ok && result.pool.guest).to.deep.include({ routes: [], dns });
  });

  it('has parsed addresses and networks', () => {
    const result = compile({
      dns: { nameservers: ['10.9.0.53'], search: ['example.com'] },
      ntp: ['10.9.0.123'],
      routes: [{ destination: '10.9.0.0/16', gateway: '10.1.0.1' }],
      networkData: { default: true },
      mtu: 1400,
    });
    expect(result.ok && result.pool.guest).to.deep.equal({
      probe: false,
      isNetworkDataDefault: true,
      dns: { nameservers: [parseAddress('10.9.0.53')], search: ['example.com'] },
      ntp: [parseAddress('10.9.0.123')],
      routes: [{ destination: parseCidr('10.9.0.0/16'), gateway: parseAddress('10.1.0.1') }],
      mtu: 1400,
    });
  });

  it('is refused in a derived pool', () => {
    expect(problemsOf({}, { [POOL_NAD_NAMESPACE]: 'vms' })).to.deep.equal([
      'spec.guest: has no effect in a derived pool: remove it, and ask the administrator for an AddressPool',
    ]);
  });

  it('lets responders probe new addresses', () => {
    const result = compile({ attachment: 'blue', dhcp: {}, probe: true });
    expect(result.ok && result.pool.guest?.probe).to.equal(true);
  });

  it('is refused with probes and without responders', () => {
    expect(problemsOf({ probe: true })).to.deep.equal([
      'spec.guest.probe: needs responders: set dhcp too, or remove probe',
    ]);
  });

  it('is refused with a route whose gateway no guest can reach', () => {
    expect(problemsOf({ routes: [{ destination: '10.9.0.0/16', gateway: '10.2.0.1' }] })).to.deep.equal([
      'spec.guest.routes[0].gateway: 10.2.0.1 is in no subnet of the pool, so guests cannot reach it',
    ]);
  });

  // objects can be older than the schema
  for (const given of [
    5,
    [],
    'x',
    { attachment: 'blue', dhcp: 1 },
    { dns: [] },
    { dns: { search: [7] } },
    { routes: [null] },
    { mtu: '1400' },
  ]) {
    it(`is refused without an error if it is ${JSON.stringify(given)}`, () => {
      expect(problemsOf(given)).to.have.length(1);
    });
  }
});
