import { expect } from 'chai';
import fc from 'fast-check';
import { anyAddress } from '../testing/addresses.js';
import { parseAddress, sameAddress } from '../address/address.js';
import { leaseName } from './lease-name.js';

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** CNI network names, good and bad, and what was made to be taken for another. */
const space = fc.oneof(
  fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]{1,5}){0,2}$/),
  fc.stringMatching(/^[A-Za-z0-9_.-]{1,80}$/),
  fc.stringMatching(/^[aA_.-]{0,4}$/),
  fc.stringMatching(/^[a.]{205,253}$/),
  fc.stringMatching(/^[a-z]{0,3}-?[0-9a-f]{16}$/),
  fc.stringMatching(/^a\.10-0-0-[12]$/),
  fc.string({ unit: 'grapheme', maxLength: 253 }),
);
/** Spaces together with those that their leases' names seem to name. */
const spaces = space.chain((one) =>
  fc.tuple(
    fc.constant(one),
    fc.oneof(
      space,
      fc.constant(one.toLowerCase()),
      fc.constant(one.replaceAll('_', '-')),
      fc.constant(leaseName(one, parseAddress('10.0.0.1')).replace('.10-0-0-1', '')),
      fc.constant(leaseName(one, parseAddress('10.0.0.1'))),
    ),
  ),
);

function expectValid(name: string): void {
  expect(name.length, name).to.be.at.most(253);
  for (const label of name.split('.')) expect(label, name).to.match(LABEL);
}

describe('leaseName', () => {
  const HASH = '-[0-9a-f]{16}';
  const a63 = 'a'.repeat(63);
  const table: readonly [string, { space: string; address: string; expect: string }][] = [
    ['joins space and IPv4 address', { space: 'blue', address: '10.1.0.17', expect: 'blue.10-1-0-17' }],
    [
      'writes all groups of an IPv6 address',
      { space: 'blue', address: '2001:db8::5', expect: 'blue.2001-0db8-0000-0000-0000-0000-0000-0005' },
    ],
    ['writes ::', { space: 'blue', address: '::', expect: `blue.${Array(8).fill('0000').join('-')}` }],
    ['writes fe80::', { space: 'b', address: 'fe80::', expect: `b.fe80-${Array(7).fill('0000').join('-')}` }],
    [
      'writes mapped addresses as IPv6',
      { space: 'blue', address: '::ffff:10.1.0.17', expect: 'blue.0000-0000-0000-0000-0000-ffff-0a01-0011' },
    ],
    ['keeps dots of the space', { space: 'a.b', address: '10.0.0.1', expect: 'a.b.10-0-0-1' }],
    ['keeps a label of 63 characters', { space: a63, address: '10.0.0.1', expect: `${a63}.10-0-0-1` }],
    ['hashes upper case', { space: 'Blue', address: '10.0.0.1', expect: `^blue${HASH}\\.10-0-0-1$` }],
    ['hashes underscores', { space: 'blue_1', address: '10.0.0.1', expect: `^blue-1${HASH}\\.10-0-0-1$` }],
    ['hashes two dots', { space: 'a..b', address: '10.0.0.1', expect: `^a\\.b${HASH}\\.10-0-0-1$` }],
    ['hashes dots at the ends', { space: '.a.', address: '10.0.0.1', expect: `^a${HASH}\\.10-0-0-1$` }],
    ['hashes dashes beside dots', { space: 'a-.-b-', address: '10.0.0.1', expect: `^a\\.b${HASH}\\.10-0-0-1$` }],
    [
      'uses only the hash if no character is valid',
      { space: '_', address: '10.0.0.1', expect: '^[0-9a-f]{16}\\.10-0-0-1$' },
    ],
    ['hashes the empty space', { space: '', address: '10.0.0.1', expect: '^[0-9a-f]{16}\\.10-0-0-1$' }],
    ['hashes a label of 64 characters', { space: `${a63}a`, address: '10.0.0.1', expect: `^a{46}${HASH}\\.10-0-0-1$` }],
    [
      'hashes a space that looks like a hashed one',
      { space: 'blue-0123456789abcdef', address: '10.0.0.1', expect: `^blue-0123456789abcdef${HASH}\\.10-0-0-1$` },
    ],
    [
      'hashes a space that looks like a bare hash',
      { space: '0123456789abcdef', address: '10.0.0.1', expect: `^0123456789abcdef${HASH}\\.10-0-0-1$` },
    ],
  ];
  for (const [title, { space, address, expect: wanted }] of table) {
    it(title, () => {
      const name = leaseName(space, parseAddress(address));
      if (wanted.startsWith('^')) expect(name).to.match(new RegExp(wanted));
      else expect(name).to.equal(wanted);
      expectValid(name);
    });
  }

  it('writes a space in the same way for both families, up to the maximum length', () => {
    const prefixOf = (space: string, address: string): string => {
      const name = leaseName(space, parseAddress(address));
      expectValid(name);
      return name.slice(0, name.lastIndexOf('.'));
    };
    const longest = [a63, a63, a63, 'a'.repeat(21)].join('.');
    expect(longest).to.have.lengthOf(213);
    expect(prefixOf(longest, '10.0.0.1')).to.equal(longest);
    expect(prefixOf(longest, '::1')).to.equal(longest);
    expect(prefixOf(`${longest}a`, '10.0.0.1')).to.match(/-[0-9a-f]{16}$/);
    expect(prefixOf(`${longest}a`, '10.0.0.1')).to.equal(prefixOf(`${longest}a`, '::1'));
  });

  it('always returns a valid object name of valid labels', () => {
    fc.assert(fc.property(space, anyAddress, (given, address) => expectValid(leaseName(given, address))));
  });

  it('returns a different name for each pair of space and address', () => {
    const near = fc.constantFrom('10.0.0.1', '10.0.0.2', '::1', '::10.0.0.1', '::ffff:10.0.0.1').map(parseAddress);
    const address = fc.oneof(anyAddress, near);
    fc.assert(
      fc.property(spaces, address, address, ([one, other], a, b) => {
        const same = one === other && sameAddress(a, b);
        expect(leaseName(one, a) === leaseName(other, b)).to.equal(same);
      }),
      { numRuns: 1000 },
    );
  });
});
