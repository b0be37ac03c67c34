import { expect } from 'chai';
import type { LeaseRecord } from '../addressing/lease/lease.js';
import { parseAddress } from '../addressing/address/address.js';
import { leaseName } from '../addressing/lease/lease-name.js';
import { claim } from '../test/objects/workload-objects.js';
import { allLeasedAddresses, leasedAddresses } from './leased-addresses.js';

const POOL = { addressSpace: 'blue-space' };
const OWN = claim({ ips: ['10.1.0.5/24', 'fd00:1::5/64'] });

function lease(text: string, more: Partial<LeaseRecord> = {}): LeaseRecord {
  const address = parseAddress(text);
  const owner = { kind: 'IPAMClaim' as const, namespace: 'vms', name: 'vm1.data', uid: OWN.metadata.uid ?? '' };
  const metadata = { name: leaseName(POOL.addressSpace, address), uid: 'u', resourceVersion: '1' };
  return { metadata, addressSpace: POOL.addressSpace, address, pool: 'blue', owner, ...more };
}

function read(leases: LeaseRecord[], of = OWN) {
  return allLeasedAddresses(of, POOL, byName(leases));
}

function byName(leases: LeaseRecord[]): Map<string, LeaseRecord> {
  return new Map(leases.map((each) => [each.metadata.name, each]));
}

describe('the leased addresses of a claim', () => {
  it('are those of its status, if all are leased to it', () => {
    expect(read([lease('10.1.0.5'), lease('fd00:1::5')])).to.deep.equal(['10.1.0.5', 'fd00:1::5'].map(parseAddress));
  });

  it('include those of an earlier pool of the address space', () => {
    expect(read([lease('10.1.0.5', { pool: 'derived' }), lease('fd00:1::5')])).to.have.length(2);
  });

  it('are known for each family alone where a lost lease must not end the other', () => {
    const leases = byName([lease('10.1.0.5'), lease('fd00:1::5', { releasedAt: 1 })]);
    expect(leasedAddresses(OWN, POOL, leases)).to.deep.equal([parseAddress('10.1.0.5')]);
  });

  const cases: { name: string; leases: LeaseRecord[]; of?: ReturnType<typeof claim> }[] = [
    { name: 'one has no lease', leases: [lease('10.1.0.5')] },
    { name: 'one is released', leases: [lease('10.1.0.5'), lease('fd00:1::5', { releasedAt: 1 })] },
    {
      name: 'one is leased to another owner',
      leases: [
        lease('10.1.0.5'),
        lease('fd00:1::5', { owner: { kind: 'Pod', namespace: 'vms', name: 'p', uid: 'p' } }),
      ],
    },
    { name: 'the status has none', leases: [], of: claim({ ips: [] }) },
    { name: 'the status cannot be read', leases: [lease('10.1.0.5')], of: claim({ ips: ['10.1.0.5', 'x'] }) },
    {
      name: 'the status has too many',
      leases: [lease('10.1.0.5')],
      of: claim({ ips: Array<string>(17).fill('10.1.0.5') }),
    },
  ];
  for (const { name, leases, of } of cases) {
    it(`are unknown if ${name}`, () => expect(read(leases, of)).to.equal(undefined));
  }
});
