import { expect } from 'chai';
import { AddressError, formatAddress } from './address.js';
import { parseRange } from './range-text.js';

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
