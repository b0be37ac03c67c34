import { expect } from 'chai';
import type { VirtualMachineInstance } from '../api/kubevirt.js';
import { REQUESTED_ADDRESSES_ANNOTATION } from '../api/names.js';
import type { PrimaryNetwork } from '../cluster/primary-network.js';
import { vmi } from '../test/objects/workload-objects.js';
import { type PrimarySelection, primarySelectionText, readPrimarySelection } from './primary-network.js';

const BOTH = '192.168.0.0/16,fd12:1234::/64';

function primaryNetwork(subnets = BOTH): PrimaryNetwork {
  const network = { name: 'tenant-net', allowPersistentIPs: true, primary: { subnets } };
  return { nad: { namespace: 'vms', name: 'udn' }, nadKey: 'vms/udn', network, others: 0 };
}

/** @param request the annotation, or an object that becomes its JSON */
function requesting(request?: unknown, macAddress?: string): VirtualMachineInstance {
  const made = vmi({});
  const text = typeof request === 'string' ? request : JSON.stringify(request);
  if (request !== undefined) made.metadata.annotations = { [REQUESTED_ADDRESSES_ANNOTATION]: text };
  const interfaces = [{ name: 'default', ...(macAddress !== undefined && { macAddress }) }];
  return { ...made, spec: { ...made.spec, domain: { devices: { interfaces } } } };
}

function read(request?: unknown, subnets?: string): PrimarySelection {
  return readPrimarySelection(requesting(request), 'default', primaryNetwork(subnets));
}

describe('the request of a VM on its primary network', () => {
  const readings: { name: string; request?: unknown; subnets?: string; ips: string[] }[] = [
    { name: 'is empty without the annotation', ips: [] },
    { name: 'is empty without the annotation even if the subnets are invalid', subnets: '10.0.0.0', ips: [] },
    { name: 'is empty if the annotation names other networks only', request: { other: ['192.168.1.10'] }, ips: [] },
    {
      name: 'gets the prefix length of the subnet of its family',
      request: { default: ['192.168.1.10', 'fd12:1234::200'], other: ['192.168.2.10'] },
      ips: ['192.168.1.10/16', 'fd12:1234::200/64'],
    },
    {
      name: 'may have the prefix length of the subnet',
      request: { default: ['10.0.0.1/8'] },
      subnets: '10.0.0.0/8',
      ips: ['10.0.0.1/8'],
    },
    { name: 'may have an IPv4 address only', request: { default: ['192.168.1.10'] }, ips: ['192.168.1.10/16'] },
    { name: 'may have an IPv6 address only', request: { default: ['fd12:1234::3'] }, ips: ['fd12:1234::3/64'] },
    {
      name: 'becomes canonical text with IPv4 first, as in the status of OVN-Kubernetes',
      request: { default: ['FD12:1234:0::0200', '192.168.1.10'] },
      ips: ['192.168.1.10/16', 'fd12:1234::200/64'],
    },
    {
      name: 'uses the first subnet if that contains the address',
      request: { default: ['192.168.1.10', 'fd12:1234::9'] },
      subnets: '192.168.0.0/16,192.0.0.0/8,fd12:1234::/64,fd12::/16',
      ips: ['192.168.1.10/16', 'fd12:1234::9/64'],
    },
    {
      name: 'uses another subnet of the family if only that contains the address',
      request: { default: ['10.1.2.3'] },
      subnets: '192.168.0.0/16,10.0.0.0/8',
      ips: ['10.1.2.3/8'],
    },
    {
      name: 'ignores blanks and empty entries of the subnets',
      request: { default: ['192.168.1.10', '2001:db8::1'] },
      subnets: ' 192.168.1.0/24 ,, 2001:db8::/32 ,',
      ips: ['192.168.1.10/24', '2001:db8::1/32'],
    },
    {
      name: 'accepts subnets with host bits',
      request: { default: ['fd12:1234::200'] },
      subnets: '192.168.0.7/16,fd12:1234::123/64',
      ips: ['fd12:1234::200/64'],
    },
    {
      name: 'accepts the widest subnet and one of a single address',
      request: { default: ['10.0.0.1', 'fe80::1'] },
      subnets: '10.0.0.1/32,::/0',
      ips: ['10.0.0.1/32', 'fe80::1/0'],
    },
  ];
  for (const { name, request, subnets, ips } of readings) {
    it(name, () => expect(read(request, subnets)).to.deep.equal({ ok: true, ips, macAddress: undefined }));
  }

  const many = Array.from({ length: 20_000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
  const refusals: { name: string; request: unknown; subnets?: string; parts: string[] }[] = [
    { name: 'is not JSON', request: 'invalid json', parts: ['"invalid json" is not a JSON object'] },
    { name: 'is JSON of another form', request: ['10.0.0.1'], parts: ['is not a JSON object'] },
    {
      name: 'is no list for the network',
      request: { default: '192.168.1.10' },
      parts: ['network "default"', 'is not a list'],
    },
    {
      name: 'contains no address',
      request: { default: ['not.an.ip.address'] },
      parts: ['network "default"', '"not.an.ip.address" is not an IP address'],
    },
    {
      name: 'contains an address with a prefix length that is not that of the subnet',
      request: { default: ['192.168.1.10/24'] },
      parts: ['192.168.1.10/24', 'write 192.168.1.10/16'],
    },
    { name: 'contains an empty address', request: { default: [''] }, parts: ['"" is not an IP address'] },
    {
      name: 'contains two addresses of a family, of which OVN-Kubernetes allocates one',
      request: { default: ['192.168.1.10', '192.168.1.20'] },
      parts: ['"192.168.1.20" is a second IPv4 address'],
    },
    {
      name: 'contains an IPv4 address, and the network has no IPv4 subnet',
      request: { default: ['192.168.1.10'] },
      subnets: 'fd12:1234::/64',
      parts: ['no IPv4 subnet configured for IPv4 IP request: 192.168.1.10', 'vms/udn has fd12:1234::/64'],
    },
    {
      name: 'contains an IPv6 address, and the network has no IPv6 subnet',
      request: { default: ['fd12:1234::200'] },
      subnets: '192.168.0.0/16',
      parts: ['no IPv6 subnet configured for IPv6 IP request: fd12:1234::200'],
    },
    {
      name: 'contains an address, and the network has no subnets',
      request: { default: ['192.168.1.10'] },
      subnets: ' , ',
      parts: ['no IPv4 subnet configured'],
    },
    {
      name: 'contains an address outside the subnet',
      request: { default: ['fd20:1234::200'] },
      parts: ['network "default": fd20:1234::200 is outside the IPv6 subnet', `vms/udn: ${BOTH}`],
    },
    {
      name: 'meets an invalid subnet',
      request: { default: ['192.168.1.10'] },
      subnets: '192.168.1.0/24,invalid-subnet,2001:db8::/32',
      parts: ['invalid subnet format: invalid-subnet in spec.config.subnets of NetworkAttachmentDefinition vms/udn'],
    },
    {
      name: 'meets an IPv4 subnet without a prefix length',
      request: { default: ['192.168.1.10'] },
      subnets: '192.168.1.0',
      parts: ['invalid subnet format: 192.168.1.0'],
    },
    {
      name: 'meets an IPv6 subnet without a prefix length',
      request: { default: ['2001:db8::1'] },
      subnets: '2001:db8::',
      parts: ['invalid subnet format: 2001:db8::'],
    },
    { name: 'is too long', request: { default: many }, parts: ['more than 16384 characters'] },
  ];
  for (const { name, request, subnets, parts } of refusals) {
    it(`is refused by name if it ${name}`, () => {
      const selection = read(request, subnets);
      if (selection.ok) throw new Error('accepted');
      for (const part of [REQUESTED_ADDRESSES_ANNOTATION, ...parts]) expect(selection.problem).to.include(part);
      expect(selection.problem.length).to.be.lessThan(1_000);
    });
  }

  it('is an IPv4 address, an IPv6 address, or neither', () => {
    const v4 = ['192.168.1.1', '127.0.0.1', '0.0.0.0', '255.255.255.255'];
    const full = '2001:0db8:85a3:0000:0000:8a2e:0370:7334';
    const v6 = ['2001:db8::1', '::1', full, '2001:db8:85a3::8a2e:370:7334', '::'];
    const invalid = ['invalid-ip', '', '256.256.256.256', '192.168.1', '192.168.1.1.1', '2001:db8::g1', `${full}:1`];
    const prefixOf = (address: string) => {
      const selection = read({ default: [address] }, '0.0.0.0/0,::/2');
      return selection.ok ? selection.ips.map((ip) => ip.replace(/.*\//, '')) : selection.problem;
    };
    for (const address of v4) expect(prefixOf(address), address).to.deep.equal(['0']);
    for (const address of v6) expect(prefixOf(address), address).to.deep.equal(['2']);
    for (const address of invalid) expect(prefixOf(address), address).to.include('is not an IP address');
  });

  it('is refused if it is an IPv4 address in the notation of IPv6, which programs read differently', () => {
    expect(read({ default: ['::ffff:192.168.1.10'] })).to.include({ ok: false });
  });

  it('keeps the MAC address of the interface as it is written', () => {
    const selection = readPrimarySelection(requesting(undefined, '02-00-00-00-00-0A'), 'default', primaryNetwork());
    expect(selection).to.deep.equal({ ok: true, ips: [], macAddress: '02-00-00-00-00-0A' });
  });

  it('is refused by name if the MAC address is invalid', () => {
    const selection = readPrimarySelection(requesting(undefined, 'x"y'), 'default', primaryNetwork());
    if (selection.ok) throw new Error('accepted');
    expect(selection.problem).to.include('interface "default": macAddress "x\\"y" is not a MAC address');
  });

  const texts: { name: string; ips: string[]; macAddress?: string; text: string | undefined }[] = [
    { name: 'without a request', ips: [], text: undefined },
    {
      name: 'for a MAC address',
      ips: [],
      macAddress: '02:03:04:05:06:07',
      text: '[{"name":"default","namespace":"ovn","mac":"02:03:04:05:06:07","ipam-claim-reference":"vm1.podnet"}]',
    },
    {
      name: 'for addresses',
      ips: ['192.168.1.10/16'],
      text: '[{"name":"default","namespace":"ovn","ips":["192.168.1.10/16"],"ipam-claim-reference":"vm1.podnet"}]',
    },
    {
      name: 'for a MAC address and addresses of both families',
      ips: ['192.168.1.10/16', 'fd12:1234::200/64'],
      macAddress: '02:03:04:05:06:07',
      text:
        '[{"name":"default","namespace":"ovn","ips":["192.168.1.10/16","fd12:1234::200/64"],' +
        '"mac":"02:03:04:05:06:07","ipam-claim-reference":"vm1.podnet"}]',
    },
  ];
  for (const { name, ips, macAddress, text } of texts) {
    it(`is written with the bytes of kubevirt/ipam-extensions ${name}`, () => {
      const target = { nadNamespace: 'ovn', claim: 'vm1.podnet' };
      expect(primarySelectionText({ ok: true, ips, macAddress }, target)).to.equal(text);
    });
  }
});
