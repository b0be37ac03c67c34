import { expect } from 'chai';
import fc from 'fast-check';
import { anyAddress } from '../testing/addresses.js';
import { AddressError, BITS, formatAddress, parseAddress } from './address.js';
import {
  containsAddress,
  firstOf,
  formatCidr,
  lastOf,
  networkOf,
  overlap,
  parseCidr,
  parseRange,
  rangesOf,
} from './cidr.js';

const addressAndLength = anyAddress.chain((address) =>
  fc.record({ address: fc.constant(address), length: fc.integer({ min: 0, max: BITS[address.family] }) }),
);

describe('parseCidr', () => {
  const readings = [
    { text: '10.0.0.0/24', first: '10.0.0.0', last: '10.0.0.255' },
    { text: '0.0.0.0/0', first: '0.0.0.0', last: '255.255.255.255' },
    { text: '10.0.0.6/31', first: '10.0.0.6', last: '10.0.0.7' },
    { text: '10.0.0.7/32', first: '10.0.0.7', last: '10.0.0.7' },
    { text: '2001:db8::/64', first: '2001:db8::', last: '2001:db8::ffff:ffff:ffff:ffff' },
    { text: '::/0', first: '::', last: 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff' },
    { text: '2001:db8::2/127', first: '2001:db8::2', last: '2001:db8::3' },
    { text: '2001:db8::3/128', first: '2001:db8::3', last: '2001:db8::3' },
  ];
  for (const { text, first, last } of readings) {
    it(`parses ${text}`, () => {
      const cidr = parseCidr(text);
      expect(formatCidr(cidr)).to.equal(text);
      expect(formatAddress({ family: cidr.family, value: firstOf(cidr) })).to.equal(first);
      expect(formatAddress({ family: cidr.family, value: lastOf(cidr) })).to.equal(last);
    });
  }

  const refused = [
    { text: '10.0.0.5/24', parts: ['"10.0.0.5/24"', 'write 10.0.0.0/24'] },
    { text: '2001:db8::5/64', parts: ['"2001:db8::5/64"', 'write 2001:db8::/64'] },
    { text: '10.0.0.0', parts: ['"10.0.0.0"', 'with a prefix length'] },
    { text: '10.0.0.0/33', parts: ['"10.0.0.0/33"', 'from 0 to 32'] },
    { text: '2001:db8::/129', parts: ['"2001:db8::/129"', 'from 0 to 128'] },
    { text: '10.0.0.0/08', parts: ['"10.0.0.0/08"', 'prefix length'] },
    { text: '10.0.0.0/255.255.255.0', parts: ['prefix length'] },
    { text: '10.0.0.0/24 ', parts: ['"10.0.0.0/24 "', 'remove the spaces'] },
    { text: ' 10.0.0.0/24', parts: ['remove the spaces'] },
    { text: '10.0.0.0 / 24', parts: ['remove the spaces'] },
    { text: '10.0.0/24', parts: ['"10.0.0"', 'four decimal numbers'] },
    { text: '', parts: ['""', 'like 10.0.0.0/24'] },
  ];
  for (const { text, parts } of refused) {
    it(`rejects "${text}", and says what to write`, () => {
      for (const part of parts) expect(() => parseCidr(text)).to.throw(AddressError, part);
    });
  }

  it('suggests the right CIDR if host bits are set', () => {
    fc.assert(
      fc.property(addressAndLength, ({ address, length }) => {
        const right = formatCidr(networkOf(address, length));
        const text = `${formatAddress(address)}/${length}`;
        if (text === right) expect(formatCidr(parseCidr(text))).to.equal(right);
        else expect(() => parseCidr(text)).to.throw(AddressError, `write ${right}`);
      }),
    );
  });
});

describe('networkOf', () => {
  it('returns the network of that length that contains the address', () => {
    fc.assert(
      fc.property(addressAndLength, ({ address, length }) => {
        const cidr = networkOf(address, length);
        expect(containsAddress(cidr, address)).to.equal(true);
        expect(lastOf(cidr) - firstOf(cidr) + 1n).to.equal(2n ** BigInt(BITS[address.family] - length));
        expect(firstOf(cidr) % (lastOf(cidr) - firstOf(cidr) + 1n)).to.equal(0n);
      }),
    );
  });
});

describe('containsAddress', () => {
  const cidr = parseCidr('10.0.1.0/24');
  for (const [text, within] of [
    ['10.0.0.255', false],
    ['10.0.1.0', true],
    ['10.0.1.255', true],
    ['10.0.2.0', false],
    ['::a00:105', false],
  ] as const) {
    it(`returns ${String(within)} for ${text} in 10.0.1.0/24`, () =>
      expect(containsAddress(cidr, parseAddress(text))).to.equal(within));
  }
});

describe('overlap', () => {
  for (const [one, other, expected] of [
    ['10.0.0.0/24', '10.0.0.128/25', true],
    ['10.0.0.0/24', '10.0.0.255/32', true],
    ['10.0.0.0/24', '10.0.0.0/24', true],
    ['10.0.0.0/25', '10.0.0.128/25', false],
    ['10.0.0.0/24', '::a00:0/120', false],
    ['::/0', 'ff00::/8', true],
  ] as const) {
    it(`returns ${expected} for ${one} and ${other}`, () => {
      expect(overlap(parseCidr(one), parseCidr(other))).to.equal(expected);
      expect(overlap(parseCidr(other), parseCidr(one))).to.equal(expected);
    });
  }
});

describe('rangesOf', () => {
  it('returns exactly the addresses of the CIDRs of the family', () => {
    const cidrs = ['10.0.0.0/24', '10.0.1.0/24', '10.0.0.128/25', '10.0.4.1/32', '2001:db8::/127'].map(parseCidr);
    const value = (text: string) => parseAddress(text).value;
    expect(rangesOf(cidrs, 4).ranges).to.deep.equal([
      { first: value('10.0.0.0'), last: value('10.0.1.255') },
      { first: value('10.0.4.1'), last: value('10.0.4.1') },
    ]);
    expect(rangesOf(cidrs, 6).ranges).to.deep.equal([{ first: value('2001:db8::'), last: value('2001:db8::1') }]);
    expect(rangesOf([], 4).isEmpty).to.equal(true);
  });
});

describe('parseRange', () => {
  const readings = [
    { text: '10.0.0.5', family: 4, first: '10.0.0.5', last: '10.0.0.5' },
    { text: '10.0.0.0/28', family: 4, first: '10.0.0.0', last: '10.0.0.15' },
    { text: '10.0.0.5-10.0.1.9', family: 4, first: '10.0.0.5', last: '10.0.1.9' },
    { text: '10.0.0.5-10.0.0.5', family: 4, first: '10.0.0.5', last: '10.0.0.5' },
    { text: '2001:db8::5', family: 6, first: '2001:db8::5', last: '2001:db8::5' },
    { text: '2001:db8::/112', family: 6, first: '2001:db8::', last: '2001:db8::ffff' },
    { text: '2001:db8::-2001:db8::f', family: 6, first: '2001:db8::', last: '2001:db8::f' },
  ];
  for (const { text, ...expected } of readings) {
    it(`parses ${text}`, () => {
      const { family, first, last } = parseRange(text);
      const format = (value: bigint): string => formatAddress({ family, value });
      expect({ family, first: format(first), last: format(last) }).to.deep.equal(expected);
    });
  }

  const refused = [
    { text: '10.0.0.9-10.0.0.5', part: '"10.0.0.9-10.0.0.5" ends before it begins: write 10.0.0.5-10.0.0.9' },
    { text: '10.0.0.9-::a00:a', part: 'begins with an IPv4 and ends with an IPv6 address' },
    { text: '10.0.0.5/28', part: 'write 10.0.0.0/28' },
    { text: '10.0.0.5-9', part: '"9" is not an IP address' },
    { text: '10.0.0.5-', part: '"" is not an IP address' },
    { text: '10.0.0.5 - 10.0.0.9', part: 'remove the spaces' },
    { text: '10.0.0.0/28-10.0.0.31', part: 'remove the prefix length' },
    { text: '10.0.0.1-10.0.0.2-10.0.0.3', part: '"10.0.0.2-10.0.0.3" is not an IP address' },
    { text: '10.0.0.*', part: 'is not an IP address' },
  ];
  for (const { text, part } of refused) {
    it(`rejects "${text}", and says what to write`, () => {
      expect(() => parseRange(text)).to.throw(AddressError, part);
    });
  }
});
