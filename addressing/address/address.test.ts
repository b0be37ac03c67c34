import { expect } from 'chai';
import fc from 'fast-check';
import { anyAddress, ipv6Groups } from '../testing/addresses.js';
import {
  AddressError,
  compareAddresses,
  formatAddress,
  formatFamily,
  parseAddress,
  parseAddressOrPrefix,
  readAllAddresses,
  sameAddress,
} from './address.js';

describe('parseAddress', () => {
  const readings = [
    { text: '0.0.0.0', family: 4, value: 0n },
    { text: '10.0.0.5', family: 4, value: 0x0a000005n },
    { text: '255.255.255.255', family: 4, value: 0xffffffffn },
    { text: '::', family: 6, value: 0n },
    { text: '::1', family: 6, value: 1n },
    { text: '2001:DB8::00ab', family: 6, value: (0x20010db8n << 96n) + 0xabn },
    { text: '1:2:3:4:5:6:7:8', family: 6, value: 0x00010002000300040005000600070008n },
    { text: '1::', family: 6, value: 1n << 112n },
    { text: '::ffff:1.2.3.4', family: 6, value: 0xffff01020304n },
    { text: '::1.2.3.4', family: 6, value: 0x01020304n },
    { text: '64:ff9b::192.0.2.33', family: 6, value: (0x64ff9bn << 96n) + 0xc0000221n },
    { text: '1:2:3:4:5:6:0.0.0.255', family: 6, value: (0x000100020003000400050006n << 32n) + 255n },
    { text: 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', family: 6, value: 2n ** 128n - 1n },
  ];
  for (const { text, ...address } of readings) {
    it(`parses ${text}`, () => expect(parseAddress(text)).to.deep.equal(address));
  }

  const refused = [
    { name: 'an octal number', text: '010.0.0.1', remedy: 'without leading zeros' },
    { name: 'a leading zero', text: '10.0.0.05', remedy: 'without leading zeros' },
    { name: 'a hexadecimal number', text: '0x7f.1', remedy: 'four decimal numbers' },
    { name: 'one number', text: '1', remedy: 'four decimal numbers' },
    { name: 'a large number', text: '167772165', remedy: 'four decimal numbers' },
    { name: 'three numbers', text: '1.2.3', remedy: 'four decimal numbers' },
    { name: 'five numbers', text: '1.2.3.4.5', remedy: 'four decimal numbers' },
    { name: 'a dot at the end', text: '1.2.3.4.', remedy: 'four decimal numbers' },
    { name: 'a number over 255', text: '10.0.0.256', remedy: '0 to 255' },
    { name: 'a leading zero behind colons', text: '::ffff:01.2.3.4', remedy: 'like 10.0.0.5 or 2001:db8::5' },
    { name: 'a zone', text: 'fe80::1%eth0', remedy: 'remove the zone' },
    { name: 'an empty zone', text: 'fe80::1%', remedy: 'remove the zone' },
    { name: 'a prefix length', text: '10.0.0.5/24', remedy: 'remove the prefix length' },
    { name: 'a space at the start', text: ' 10.0.0.5', remedy: 'remove the spaces' },
    { name: 'a line break', text: '10.0.0.5\n', remedy: 'remove the spaces' },
    { name: 'an empty text', text: '', remedy: 'like 10.0.0.5 or 2001:db8::5' },
    { name: 'brackets', text: '[::1]', remedy: 'like 10.0.0.5 or 2001:db8::5' },
    { name: 'two ::', text: '1::2::3', remedy: 'like 10.0.0.5 or 2001:db8::5' },
    { name: 'nine groups', text: '1:2:3:4:5:6:7:8:9', remedy: 'like 10.0.0.5 or 2001:db8::5' },
    { name: 'five digits', text: '::12345', remedy: 'like 10.0.0.5 or 2001:db8::5' },
    { name: 'full-width digits', text: '１.2.3.4', remedy: 'like 10.0.0.5 or 2001:db8::5' },
    { name: 'a host name', text: 'vm1.example', remedy: 'like 10.0.0.5 or 2001:db8::5' },
  ];
  for (const { name, text, remedy } of refused) {
    it(`rejects ${name}, and says what to write`, () => {
      expect(() => parseAddress(text)).to.throw(AddressError, `${JSON.stringify(text)} is not an IP address: `);
      expect(() => parseAddress(text)).to.throw(TypeError, remedy);
    });
  }

  it('shortens a long text in the message', () => {
    expect(() => parseAddress('1'.repeat(100_000))).to.throw(AddressError, /^.{80,300}$/);
  });

  it('parses the output of formatAddress', () => {
    fc.assert(fc.property(anyAddress, (address) => sameAddress(parseAddress(formatAddress(address)), address)));
  });

  it('parses all spellings of an IPv6 address to the same address', () => {
    fc.assert(
      fc.property(ipv6Groups, fc.boolean(), fc.boolean(), (groups, padded, dotted) => {
        const hex = groups.map((group) => group.toString(16).padStart(padded ? 4 : 1, '0'));
        const tail = groups.slice(6).flatMap((group) => [group >> 8, group & 255]);
        const text = dotted ? `${hex.slice(0, 6).join(':')}:${tail.join('.')}` : hex.join(':').toUpperCase();
        const value = BigInt(`0x${groups.map((group) => group.toString(16).padStart(4, '0')).join('')}`);
        expect(parseAddress(text)).to.deep.equal({ family: 6, value });
      }),
    );
  });

  it('throws only AddressError, for any text', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[0-9a-fx:./%]{0,45}$/));
    fc.assert(
      fc.property(text, (written) => {
        try {
          expect(parseAddress(written)).to.have.property('family');
        } catch (error) {
          expect(error).to.be.instanceOf(AddressError);
        }
      }),
    );
  });
});

describe('formatAddress', () => {
  // The rules of RFC 5952, §4 and §5, with its own examples.
  const rules = [
    { rule: 'drops leading zeros (4.1)', given: '2001:0db8::0001', expect: '2001:db8::1' },
    { rule: 'shortens as much as possible (4.2.1)', given: '2001:db8:0:0:0:0:2:1', expect: '2001:db8::2:1' },
    { rule: 'keeps a single zero group (4.2.2)', given: '2001:db8::1:1:1:1:1', expect: '2001:db8:0:1:1:1:1:1' },
    { rule: 'shortens the longest run (4.2.3)', given: '2001:0:0:1:0:0:0:1', expect: '2001:0:0:1::1' },
    { rule: 'shortens the first of equal runs (4.2.3)', given: '2001:db8:0:0:1:0:0:1', expect: '2001:db8::1:0:0:1' },
    { rule: 'writes lower case (4.3)', given: '2001:DB8::AAAA', expect: '2001:db8::aaaa' },
    { rule: 'writes mapped addresses with dots (5)', given: '::ffff:c000:201', expect: '::ffff:192.0.2.1' },
    { rule: 'writes zeros alone as a gap', given: '0:0:0:0:0:0:0:0', expect: '::' },
    { rule: 'shortens at the start', given: '0:0:0:0:0:0:0:1', expect: '::1' },
    { rule: 'shortens at the end', given: 'fe80:0:0:0:0:0:0:0', expect: 'fe80::' },
    { rule: 'takes the first run also at the start', given: '0:0:1:0:0:1:0:0', expect: '::1:0:0:1:0:0' },
    { rule: 'takes the longer run at the end', given: '0:0:1:2:3:0:0:0', expect: '0:0:1:2:3::' },
    { rule: 'keeps single zero groups at both ends', given: '0:2:3:4:5:6:7:0', expect: '0:2:3:4:5:6:7:0' },
    { rule: 'writes compatible addresses without dots, as Go does', given: '::1.2.3.4', expect: '::102:304' },
    { rule: 'writes translated addresses without dots', given: '64:ff9b::1.2.3.4', expect: '64:ff9b::102:304' },
    { rule: 'writes IPv4 with dots', given: '10.0.255.1', expect: '10.0.255.1' },
  ];
  for (const { rule, given, expect: text } of rules) {
    it(rule, () => expect(formatAddress(parseAddress(given))).to.equal(text));
  }

  it('writes IPv6 like the URL standard, except for mapped addresses', () => {
    fc.assert(
      fc.property(ipv6Groups, (groups) => {
        const text = groups.map((group) => group.toString(16)).join(':');
        fc.pre(!text.startsWith('0:0:0:0:0:ffff:'));
        expect(`[${formatAddress(parseAddress(text))}]`).to.equal(new URL(`http://[${text}]`).hostname);
      }),
    );
  });

  it('writes different addresses as different texts', () => {
    fc.assert(
      fc.property(anyAddress, anyAddress, (a, b) => sameAddress(a, b) === (formatAddress(a) === formatAddress(b))),
    );
  });
});

describe('parseAddressOrPrefix', () => {
  it('parses an address without a prefix length', () => {
    expect(parseAddressOrPrefix('10.0.0.5')).to.deep.equal({ address: parseAddress('10.0.0.5') });
  });

  for (const [text, address, prefixLength] of [
    ['10.0.0.5/24', '10.0.0.5', 24],
    ['10.0.0.5/0', '10.0.0.5', 0],
    ['10.0.0.5/32', '10.0.0.5', 32],
    ['2001:db8::5/64', '2001:db8::5', 64],
    ['::ffff:1.2.3.4/128', '::ffff:1.2.3.4', 128],
  ] as const) {
    it(`parses ${text}`, () =>
      expect(parseAddressOrPrefix(text)).to.deep.equal({ address: parseAddress(address), prefixLength }));
  }

  for (const [text, remedy = 'write an integer'] of [
    ['10.0.0.5/33'],
    ['10.0.0.5/'],
    ['10.0.0.5/-1'],
    ['10.0.0.5/024'],
    ['10.0.0.5/ 24', 'remove the spaces'],
    ['10.0.0.5/24 ', 'remove the spaces'],
    ['10.0.0.5/2/4'],
    ['::1/129'],
  ] as const) {
    it(`rejects "${text}", and quotes the whole text`, () => {
      const message = `"${text}" has no valid prefix length: ${remedy}`;
      expect(() => parseAddressOrPrefix(text)).to.throw(AddressError, message);
    });
  }

  it('rejects an invalid address before the slash', () => {
    expect(() => parseAddressOrPrefix('/24')).to.throw(AddressError, 'is not an IP address');
    expect(() => parseAddressOrPrefix('fe80::1%eth0/64')).to.throw(AddressError, 'zone');
  });
});

describe('readAllAddresses', () => {
  it('ignores prefix lengths', () => {
    const expected = [parseAddress('10.0.0.5'), parseAddress('fd00::5')];
    expect(readAllAddresses(['10.0.0.5/24', 'fd00::5'])).to.deep.equal(expected);
  });

  it('returns no address if one of the values is invalid or is no text', () => {
    for (const invalid of ['10.0.0.5/33', '', null, 5])
      expect(readAllAddresses(['10.0.0.5', invalid])).to.equal(undefined);
  });
});

describe('sameAddress', () => {
  it('distinguishes the families', () => {
    expect(sameAddress(parseAddress('0.0.0.1'), parseAddress('::1'))).to.equal(false);
    expect(sameAddress(parseAddress('0.0.0.1'), parseAddress('0.0.0.1'))).to.equal(true);
  });
});

describe('compareAddresses', () => {
  it('sorts IPv4 first, then by value', () => {
    const texts = ['203.0.113.9', '203.0.113.10', '2001:db8::9', '2001:db8::a', '2001:db8::10'];
    expect(texts.map(parseAddress).toReversed().sort(compareAddresses).map(formatAddress)).to.deep.equal(texts);
  });
});

describe('formatFamily', () => {
  it('spells families as Kubernetes does', () => {
    expect([formatFamily(4), formatFamily(6)]).to.deep.equal(['IPv4', 'IPv6']);
  });
});
