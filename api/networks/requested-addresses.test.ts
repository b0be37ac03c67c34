import { expect } from 'chai';
import { requestedNetworks, requestedAddresses } from './requested-addresses.js';

const ANNOTATION = 'network.kubevirt.io/addresses';

function read(value: unknown, vmNetwork = 'data') {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return requestedAddresses({ [ANNOTATION]: text }, vmNetwork);
}

describe('requestedAddresses', () => {
  const valid: { name: string; given: string[]; expect: string[] }[] = [
    { name: 'reads an IPv4 address', given: ['10.0.0.5'], expect: ['10.0.0.5'] },
    { name: 'puts IPv4 first', given: ['2001:db8::5', '10.0.0.5'], expect: ['10.0.0.5', '2001:db8::5'] },
    { name: 'writes IPv6 canonically', given: ['2001:0DB8:0:0:0:0:0:5'], expect: ['2001:db8::5'] },
    {
      name: 'keeps prefix lengths',
      given: ['2001:0DB8::5/64', '10.0.0.5/24'],
      expect: ['10.0.0.5/24', '2001:db8::5/64'],
    },
  ];
  for (const { name, given, expect: addresses } of valid) {
    it(name, () => expect(read({ data: given })).to.deep.equal({ kind: 'addresses', addresses }));
  }

  it('finds nothing without an annotation, or without this network in it', () => {
    expect(requestedAddresses(undefined, 'data')).to.deep.equal({ kind: 'none' });
    expect(requestedAddresses({ other: '{' }, 'data')).to.deep.equal({ kind: 'none' });
    expect(read({ extra: ['10.0.0.5'] })).to.deep.equal({ kind: 'none' });
    expect(read({}, 'toString')).to.deep.equal({ kind: 'none' });
  });

  it('reads each network separately', () => {
    expect(read({ extra: 'x', data: ['10.0.0.5'] })).to.have.property('kind', 'addresses');
  });

  const refused: { name: string; given: unknown; parts: string[] }[] = [
    { name: 'a text over the bound', given: { data: ['x'.repeat(16_384)] }, parts: ['more than 16384 characters'] },
    { name: 'text that is no JSON', given: '10.0.0.5', parts: ['"10.0.0.5"', 'JSON object'] },
    { name: 'a list', given: ['10.0.0.5'], parts: ['JSON object'] },
    { name: 'an empty annotation', given: '', parts: ['""'] },
    { name: 'null', given: { data: null }, parts: ['network "data"', 'null', 'list of addresses'] },
    { name: 'a bare address', given: { data: '10.0.0.5' }, parts: ['network "data"', '"10.0.0.5"'] },
    { name: 'an empty list', given: { data: [] }, parts: ['network "data"', 'an empty list'] },
    { name: 'a number', given: { data: [5] }, parts: ['network "data"', '5 is not an IP address'] },
    {
      name: 'a prefix length that is too long',
      given: { data: ['10.0.0.5/33'] },
      parts: ['"10.0.0.5/33"', '"10.0.0.5/24"'],
    },
    { name: 'a netmask', given: { data: ['10.0.0.5/255.255.255.0'] }, parts: ['"10.0.0.5/255.255.255.0"'] },
    { name: 'a zone', given: { data: ['fe80::1%eth0'] }, parts: ['"fe80::1%eth0"', 'zone'] },
    { name: 'leading zeros', given: { data: ['10.0.0.05'] }, parts: ['"10.0.0.05"'] },
    { name: 'two of a family', given: { data: ['10.0.0.5', '10.0.0.6'] }, parts: ['"10.0.0.6"', 'second IPv4'] },
    { name: 'three', given: { data: ['10.0.0.5', '::1', '::2'] }, parts: ['"::2"', 'second IPv6'] },
  ];
  for (const { name, given, parts } of refused) {
    it(`rejects ${name}`, () => {
      const request = read(given);
      if (request.kind !== 'invalid') throw new Error(`it is ${request.kind}`);
      for (const part of [ANNOTATION, ...parts]) expect(request.problem).to.include(part);
    });
  }
});

describe('networksAskedFor', () => {
  const rows: { text: string | undefined; expect: string[] }[] = [
    { text: '{"data": ["10.0.0.5"], "dta": "x"}', expect: ['data', 'dta'] },
    { text: '{}', expect: [] },
    { text: '["data"]', expect: [] },
    { text: '{', expect: [] },
    { text: undefined, expect: [] },
  ];
  for (const { text, expect: networks } of rows) {
    it(`finds ${networks.join(' and ') || 'none'} in ${text ?? 'nothing'}`, () =>
      expect(requestedNetworks(text === undefined ? {} : { [ANNOTATION]: text })).to.deep.equal(networks));
  }
});
