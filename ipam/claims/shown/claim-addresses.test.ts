import { expect } from 'chai';
import { createClaim } from '../testing/claim-observation.js';
import { formatAddress } from '../../../addressing/address/address.js';
import { readAddressRequest, readShownAddresses } from './claim-addresses.js';

describe('the address request of a claim', () => {
  function check(name: string, text: string | undefined, expected: string): void {
    it(name, () => {
      const request = readAddressRequest(createClaim(text === undefined ? {} : { request: text }));
      if (request.kind === 'addresses') expect(request.addresses.map(formatAddress).join(', ')).to.equal(expected);
      else if (request.kind === 'none') expect(request.kind).to.equal(expected);
      else {
        expect(request.problem).to.contain(expected);
        const pattern = /^ipam\.holdfast\.dev\/requested-addresses: .*, or remove (it|the annotation)$/;
        expect(request.problem).to.match(pattern);
      }
    });
  }

  check('is empty without the annotation', undefined, 'none');
  check('may be one address', '["10.0.0.5"]', '10.0.0.5');
  check('is sorted with IPv4 first', '["2001:DB8::5", "10.0.0.5"]', '10.0.0.5, 2001:db8::5');
  check('may have prefix lengths', '["10.0.0.5/24"]', '10.0.0.5');
  check('is refused if it is not JSON', '10.0.0.5', '"10.0.0.5" is not a list of addresses');
  check('is refused if it is not a list', '{"a": 1}', 'is not a list of addresses');
  check('is refused if the list is empty', '[]', 'the list is empty');
  check('is refused if an element is not a string', '[5]', '5 is not an address');
  check('is refused if an element is not an address', '["010.0.0.5"]', '"010.0.0.5" is not an IP address');
  check('is refused if an address has a zone', '["fe80::1%eth0"]', '"fe80::1%eth0" is not an IP address');
  check('is refused if it names two of one family', '["10.0.0.5", "10.0.0.6"]', '"10.0.0.6" is a second IPv4 address');
});

describe("the addresses in a claim's status", () => {
  it('are read without prefix lengths, IPv4 first', () => {
    const { addresses } = readShownAddresses(createClaim({ ips: ['2001:db8::5/64', '10.0.0.5/24'] }));
    expect(addresses.map(formatAddress)).to.deep.equal(['10.0.0.5', '2001:db8::5']);
  });

  it('are empty without a status, and if another IPAM wrote a status without addresses', () => {
    expect(readShownAddresses(createClaim()).addresses).to.deep.equal([]);
    const claim = { ...createClaim(), status: {} as { ips: string[] } };
    expect(readShownAddresses(claim).addresses).to.deep.equal([]);
  });

  it('are ignored if one of them cannot be parsed', () => {
    const shown = readShownAddresses(createClaim({ ips: ['10.0.0.5/24', 'x'] }));
    expect(shown.addresses).to.deep.equal([]);
    expect(shown.problem).to.match(/^status\.ips: "x" is not an IP address.*, or clear it$/);
  });
});
