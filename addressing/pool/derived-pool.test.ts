import { expect } from 'chai';
import { readHoldfastIpam } from '../../api/networks/ipam-config.js';
import type { AddressPoolSpec } from '../../api/address-pool.js';
import { derivedPoolName, derivedSpec } from './derived-pool.js';
import { type NadRights } from '../../api/networks/nad-rights.js';

const PATH = 'spec.config.ipam';

function specOf(ipam: object, rights: Partial<Pick<NadRights, 'servesAll' | 'publishesCapacity'>> = {}) {
  const read = readHoldfastIpam({ type: 'holdfast', ...ipam }, PATH);
  if (!read.ok) expect.fail(`${read.problem.field} ${read.problem.message}`);
  return derivedSpec('blue', read.config, {
    namespace: 'vms',
    rights: { servesAll: true, publishesCapacity: false, ...rights },
  });
}

describe('derivedSpec', () => {
  it('returns the same object for the same config, network and rights', () => {
    const read = readHoldfastIpam({ type: 'holdfast', range: '10.0.0.0/24' }, PATH);
    if (!read.ok) expect.fail(read.problem.message);
    const owner = { namespace: 'vms', rights: { servesAll: false, publishesCapacity: false } };
    const first = derivedSpec('blue', read.config, owner);
    expect(derivedSpec('blue', read.config, { ...owner })).to.equal(first);
    expect(derivedSpec('red', read.config, owner)).to.have.nested.property('spec.network', 'red');
    const others = derivedSpec('red', read.config, { ...owner, namespace: 'others' });
    expect(others).to.have.deep.nested.property('spec.namespaces', ['others']);
    expect(derivedSpec('blue', { ...read.config }, owner)).not.to.equal(first);
  });

  const rows: { name: string; given: object; expect: Omit<AddressPoolSpec, 'network'> }[] = [
    {
      name: 'the fields of an AddressPool',
      given: { subnets: [{ cidr: '10.0.0.0/24', gateway: '10.0.0.1' }], addressSpace: 'lan', cooldownSeconds: 5 },
      expect: { addressSpace: 'lan', subnets: [{ cidr: '10.0.0.0/24', gateway: '10.0.0.1' }], cooldownSeconds: 5 },
    },
    {
      name: 'a whereabouts range with host bits, which are ignored',
      given: { range: '192.168.2.225/28', exclude: ['192.168.2.229/30', '192.168.2.236/32'] },
      expect: { subnets: [{ cidr: '192.168.2.224/28', exclude: ['192.168.2.228/30', '192.168.2.236/32'] }] },
    },
    {
      name: 'a first and a last address',
      given: { range: '10.0.0.10-10.0.0.20/24', range_start: '10.0.0.1' },
      expect: { subnets: [{ cidr: '10.0.0.0/24', ranges: ['10.0.0.10-10.0.0.20'] }] },
    },
    {
      name: 'a range_start without an end',
      given: { range: '10.0.0.0/24', range_start: '10.0.0.10' },
      expect: { subnets: [{ cidr: '10.0.0.0/24', ranges: ['10.0.0.10-10.0.0.255'] }] },
    },
    {
      name: 'a range_end without a start',
      given: { range: 'fd00::/64', range_end: 'fd00::ff' },
      expect: { subnets: [{ cidr: 'fd00::/64', ranges: ['fd00::-fd00::ff'] }] },
    },
    {
      name: 'ranges of both families, with the gateway in its subnet',
      given: { ipRanges: [{ range: '10.0.0.0/24' }, { range: 'fd00::/64' }], gateway: 'fd00::1', network_name: 'lan' },
      expect: { addressSpace: 'lan', subnets: [{ cidr: '10.0.0.0/24' }, { cidr: 'fd00::/64', gateway: 'fd00::1' }] },
    },
    {
      name: 'exclusions and a gateway outside of all ranges, which are ignored',
      given: { range: '192.168.2.224/28', exclude: ['10.0.0.0/8', 'fd00::1'], gateway: '192.168.2.1' },
      expect: { subnets: [{ cidr: '192.168.2.224/28' }] },
    },
  ];
  for (const { name, given, expect: expected } of rows) {
    it(`reads ${name}`, () => {
      expect(specOf(given)).to.deep.include({ kind: 'spec', spec: { network: 'blue', ...expected } });
    });
  }

  it('returns no pool for a NAD without subnets, which an administrator’s pool serves', () => {
    expect(specOf({ cooldownSeconds: 5 })).to.deep.equal({ kind: 'none' });
  });

  const refused = [
    {
      name: 'a range without a prefix length',
      given: { range: '10.0.0.0' },
      problem: /^range is invalid: "10\.0\.0\.0" has no prefix/,
    },
    {
      name: 'a start outside the range',
      given: { range: '10.0.0.0/24', range_start: '10.0.1.1' },
      problem: /^range_start is 10\.0\.1\.1, .*10\.0\.0\.0\/24/,
    },
    {
      name: 'a first address outside the range',
      given: { range: '10.0.1.1-10.0.0.9/24' },
      problem: /^range is 10\.0\.1\.1/,
    },
    {
      name: 'a range whose end is before its start',
      given: { range: '10.0.0.9-10.0.0.3/24' },
      problem: /^range ends at 10\.0\.0\.3, before it begins at 10\.0\.0\.9: swap the two$/,
    },
    {
      name: 'a range_end before range_start',
      given: { range: '10.0.0.0/24', range_start: '10.0.0.9', range_end: '10.0.0.3' },
      problem: /^range_end ends at 10\.0\.0\.3, before it begins at 10\.0\.0\.9: swap the two$/,
    },
    {
      name: 'a start of the other family',
      given: { range: '10.0.0.0/24', range_start: 'fd00::1' },
      problem: /^range_start is fd00::1/,
    },
    {
      name: 'an invalid exclusion',
      given: { range: '10.0.0.0/24', exclude: ['x'] },
      problem: /^exclude\[0\] is invalid: "x"/,
    },
    { name: 'an invalid gateway', given: { range: '10.0.0.0/24', gateway: 'x' }, problem: /^gateway is invalid: "x"/ },
    {
      name: 'host bits in the cidr of a subnet',
      given: { subnets: [{ cidr: '10.0.0.1/24' }] },
      problem: /^subnets\[0\]\.cidr cannot be served: "10/,
    },
    {
      name: 'ranges that overlap',
      given: { ipRanges: [{ range: '10.0.0.0/24' }, { range: '10.0.0.0/25' }] },
      problem:
        /^ipRanges\[1\]\.range cannot be served: .*overlaps with "10\.0\.0\.0\/24" \(spec\.config\.ipam\.ipRanges\[0\]\.range\)/,
    },
    {
      name: 'ranges of a subnet that overlap',
      given: { subnets: [{ cidr: '10.0.0.0/24', ranges: ['10.0.0.1-10.0.0.9', '10.0.0.5'] }] },
      problem: /^subnets\[0\]\.ranges\[1\] .* \(spec\.config\.ipam\.subnets\[0\]\.ranges\[0\]\)/,
    },
    {
      name: 'the maximum number of namespaces besides its own',
      given: { range: '10.0.0.0/24', namespaces: Array.from({ length: 256 }, (_, index) => `team-${index}`) },
      problem:
        /^namespaces names 256 namespaces besides "vms", which a pool of this NAD always serves: name at most 255/,
    },
    {
      name: 'more ranges than a pool may have',
      given: {
        range: '10.1.0.0/24',
        ipRanges: Array.from({ length: 16 }, (_, index) => ({ range: `10.0.${index}.0/24` })),
      },
      problem: /^ipRanges cannot be served: has 17 elements/,
    },
    {
      name: 'an invalid duration',
      given: { subnets: [{ cidr: '10.0.0.0/24' }], stickyMAC: { ttl: 'x' } },
      problem: /^stickyMAC\.ttl cannot be served/,
    },
  ];
  for (const { name, given, problem } of refused) {
    it(`rejects ${name}, and names the field of the NAD`, () => {
      const found = specOf(given);
      if (found.kind !== 'invalid') expect.fail(found.kind);
      const [first] = found.problems;
      expect(`${first?.field.replace(`${PATH}.`, '') ?? ''} ${first?.message ?? ''}`).to.match(problem);
    });
  }

  it('gives each pair of namespace and network a name of its own', () => {
    expect(derivedPoolName('vms', 'blue')).to.equal('blue.vms');
    expect(derivedPoolName('vms', 'Blue_1')).to.match(/^blue-1\.vms-[0-9a-f]{10}$/);
    expect(derivedPoolName('vms', 'blue_1')).to.not.equal(derivedPoolName('vms', 'blue-1'));
    expect(derivedPoolName('vms', 'b'.repeat(253))).to.have.lengthOf(253);
  });
});
