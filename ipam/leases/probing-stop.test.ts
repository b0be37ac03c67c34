import { expect } from 'chai';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { parseAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { QuarantinedByMac } from '../../addressing/lease/lease-quarantine.js';
import { probingStopOf } from './probing-stop.js';

function quarantinedOf(byMac: Record<string, string[]>): QuarantinedByMac {
  const record = (text: string, mac: string): LeaseRecord => {
    const address = parseAddress(text);
    const metadata = { name: leaseName('blue', address), uid: text, resourceVersion: '1' };
    return { metadata, addressSpace: 'blue', address, pool: 'blue', quarantine: { since: 0, until: 1, mac } };
  };
  return new Map(
    Object.entries(byMac).map(([mac, addresses]) => [mac, new Set(addresses.map((each) => record(each, mac)))]),
  );
}

const V4 = (count: number, first = 1) => Array.from({ length: count }, (_, index) => `10.0.0.${first + index}`);
const V6 = (count: number) => Array.from({ length: count }, (_, index) => `2001:db8::${(index + 1).toString(16)}`);
const ONE_EACH = (addresses: string[]) =>
  Object.fromEntries(
    addresses.map((address, index) => [`02:00:00:00:00:${index.toString(16).padStart(2, '0')}`, [address]]),
  );

describe('the probes of a pool', () => {
  const stopOf = (cidrs: string[], byMac: Record<string, string[]>) =>
    probingStopOf(compiledPool({ subnets: cidrs.map((cidr) => ({ cidr })) }), quarantinedOf(byMac));

  it('go on while no address is quarantined', () => {
    expect(stopOf(['10.0.0.0/24'], {})).to.equal(undefined);
  });

  it('stop when one host has three quarantined addresses', () => {
    expect(stopOf(['10.0.0.0/24'], { m1: V4(2), m2: V4(2, 5) })).to.equal(undefined);
    expect(stopOf(['10.0.0.0/24'], { m1: V4(2), m2: V4(3, 5) })).to.include({ reason: 'ProxyARP', mac: 'm2' });
  });

  it('stop when an eighth of the addresses of a family is quarantined, even if the other family has many more', () => {
    const dual = ['10.0.0.0/26', '2001:db8::/64'];
    expect(stopOf(dual, ONE_EACH([...V4(6), ...V6(40)]))).to.equal(undefined);
    expect(stopOf(dual, ONE_EACH(V4(7)))).to.include({ reason: 'QuarantineFull' });
  });

  it('stop when 64 addresses are quarantined', () => {
    expect(stopOf(['2001:db8::/64'], ONE_EACH(V6(63)))).to.equal(undefined);
    expect(stopOf(['2001:db8::/64'], ONE_EACH(V6(64)))).to.include({ reason: 'QuarantineFull' });
  });

  it('stop with the first quarantined address of a pool that has only a few', () => {
    expect(stopOf(['10.0.0.0/29'], ONE_EACH(V4(1)))).to.include({ reason: 'QuarantineFull' });
  });
});
