import { expect } from 'chai';
import { readLease } from '../../addressing/lease/lease.js';
import { compiledPool, leaseOf } from '../../test/objects/lease-objects.js';
import { addressMapOf } from '../usage/address-map.js';
import { subnetsOf, windowOf } from './map-window.js';
import { leaseRow } from './rows.js';

describe('A window of the map of addresses', () => {
  const leases = ['10.8.3.7', '10.8.200.9'].map((address, n) => readLease(leaseOf(address, n + 1, { uid: `u${n}` })));
  const large = addressMapOf(compiledPool({ cidr: '10.8.0.0/16' }), { leases }, 0);
  const show = (map: typeof large, at: string, bits?: number) =>
    windowOf(map, { at, bits }, leases, (lease) => leaseRow(lease));

  it('shows a /16 as 256 cells, and the state of each of its addresses', () => {
    const window = show(large, '');
    expect(window).to.include({ first: '10.8.0.0', last: '10.8.255.255', bits: 16 });
    expect(window?.cells).to.have.length(256);
    expect(window?.cells[3]).to.deep.equal({
      first: '10.8.3.0',
      last: '10.8.3.255',
      counts: { free: '255', allocated: '1' },
    });
    expect(window?.states).to.have.length(65_536);
    expect(window?.states?.[3 * 256 + 7]).to.equal('#');
  });

  it('shows the lease of each address at the largest scale', () => {
    const window = show(large, '10.8.3.99', 8);
    expect(window).to.include({ first: '10.8.3.0', last: '10.8.3.255' });
    expect(window?.cells[7]?.lease).to.include({ address: '10.8.3.7', state: 'held' });
  });

  it('shows the lease of an IPv4 address although an IPv6 address has the same number', () => {
    const [v4, v6] = ['10.8.3.7', '::10.8.3.7'].map((address, n) => readLease(leaseOf(address, n + 1)));
    const window = windowOf(large, { at: '10.8.3.7', bits: 8 }, [v4!, v6!], (lease) => leaseRow(lease));
    expect(window?.cells[7]?.lease).to.include({ address: '10.8.3.7' });
  });

  it('begins a large IPv6 subnet with the part that is in use', () => {
    const pool = compiledPool({ cidr: '2001:db8::/64' });
    const used = ['2001:db8::1:5', '2001:db8::9:5'].map((address, n) =>
      readLease(leaseOf(address, n + 1, { uid: `v${n}` })),
    );
    const map = addressMapOf(pool, { leases: used }, 0);
    expect(subnetsOf(map)).to.deep.equal([{ cidr: '2001:db8::/64', top: '2001:db8::', bits: 20 }]);
    const all = show(map, '2001:db8::', 64);
    expect(all?.cells).to.have.length(256);
    expect(all?.states).to.equal(undefined);
    expect(Object.keys(all?.cells[0]?.counts ?? {})).to.include('allocated');
    expect(all?.cells[255]?.counts.free).to.equal(String(2n ** 56n));
  });

  for (const [at, bits] of [
    ['', -5],
    ['nonsense', 500],
    ['192.0.2.1', 8],
    ['10.8.255.255', 0],
  ] as const) {
    it(`stays within the subnet for at=${at} and bits=${bits}`, () => {
      const window = show(large, at, bits);
      expect(window?.first).to.match(/^10\.8\./);
      expect(window?.last).to.match(/^10\.8\./);
    });
  }

  it('of a subnet that is not a power of 256 has cells of several addresses', () => {
    const map = addressMapOf(compiledPool({ cidr: '10.8.0.0/22' }), { leases: [] }, 0);
    const window = show(map, '');
    expect(window?.cells).to.have.length(256);
    expect(window?.cells[1]).to.include({ first: '10.8.0.4', last: '10.8.0.7' });
  });
});
