import { expect } from 'chai';
import { createClaim } from './testing/claim-observation.js';
import { formatAddress } from '../core/address.js';
import { readAddressRequest, readShownAddresses } from './claim-addresses.js';

describe('what a claim asks for', () => {
  const rows: { name: string; text: string | undefined; expect: string }[] = [
    { name: 'is nothing without the annotation', text: undefined, expect: 'none' },
    { name: 'is one address', text: '["10.0.0.5"]', expect: '10.0.0.5' },
    { name: 'is IPv4 first', text: '["2001:DB8::5", "10.0.0.5"]', expect: '10.0.0.5, 2001:db8::5' },
    { name: 'may have the prefix lengths of a predecessor', text: '["10.0.0.5/24"]', expect: '10.0.0.5' },
    { name: 'is refused where it is no JSON', text: '10.0.0.5', expect: '"10.0.0.5" is no list of addresses' },
    { name: 'is refused where it is no list', text: '{"a": 1}', expect: 'is no list of addresses' },
    { name: 'is refused where the list is empty', text: '[]', expect: 'an empty list asks for nothing' },
    { name: 'is refused where it is no text', text: '[5]', expect: '5 is no address' },
    { name: 'is refused where it is no address', text: '["010.0.0.5"]', expect: '"010.0.0.5" is no IP address' },
    { name: 'is refused with a zone', text: '["fe80::1%eth0"]', expect: '"fe80::1%eth0" is no IP address' },
    {
      name: 'is refused where it is two of a family',
      text: '["10.0.0.5", "10.0.0.6"]',
      expect: '"10.0.0.6" is a second IPv4 address',
    },
  ];
  for (const { name, text, expect: expected } of rows) {
    it(name, () => {
      const request = readAddressRequest(createClaim(text === undefined ? {} : { request: text }));
      if (request.kind === 'addresses') expect(request.addresses.map(formatAddress).join(', ')).to.equal(expected);
      else if (request.kind === 'none') expect(request.kind).to.equal(expected);
      else {
        expect(request.problem).to.contain(expected);
        expect(request.problem).to.match(
          /^ipam\.holdfast\.dev\/requested-addresses: .*, or remove (it|the annotation)$/,
        );
      }
    });
  }
});

describe('what a claim’s status shows', () => {
  it('is read without prefix lengths, IPv4 first', () => {
    const { addresses } = readShownAddresses(createClaim({ ips: ['2001:db8::5/64', '10.0.0.5/24'] }));
    expect(addresses.map(formatAddress)).to.deep.equal(['10.0.0.5', '2001:db8::5']);
  });

  it('is nothing where there is no status, or an IPAM wrote one without addresses', () => {
    expect(readShownAddresses(createClaim()).addresses).to.deep.equal([]);
    const claim = { ...createClaim(), status: {} as { ips: string[] } };
    expect(readShownAddresses(claim).addresses).to.deep.equal([]);
  });

  it('does not count where a part cannot be read', () => {
    const shown = readShownAddresses(createClaim({ ips: ['10.0.0.5/24', 'x'] }));
    expect(shown.addresses).to.deep.equal([]);
    expect(shown.problem).to.match(/^status\.ips: "x" is no IP address.*, or clear it$/);
  });
});
