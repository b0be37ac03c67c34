import { expect } from 'chai';
import fc from 'fast-check';
import type { AddressPool } from '../../api/address-pool.js';
import { type PoolProblem, compilePool } from './pool.js';

function problemsOf(spec: unknown): readonly PoolProblem[] {
  const result = compilePool({ metadata: { name: 'blue', uid: 'u1' }, spec } as AddressPool);
  return result.ok ? [] : result.problems;
}

function subnets(...given: unknown[]): unknown {
  return { network: 'blue', subnets: given };
}

const B = { cidr: '10.0.0.0/24' };
const BLUE = { network: 'blue', subnets: [B] };
const many = (count: number, each: (i: number) => unknown): unknown[] =>
  Array.from({ length: count }, (_, i) => each(i));

describe('compilePool of an invalid spec', () => {
  /** The name, the spec, the field below `spec`, and parts of the message. */
  type Row = [string, unknown, string, string[]];
  function inSubnet(name: string, fields: object, field: string, ...parts: string[]): Row {
    return [name, subnets({ ...B, ...fields }), `subnets[0].${field}`, parts];
  }
  const table: Row[] = [
    ['no network', { subnets: [B] }, 'network', ['absent', 'like blue']],
    ['an empty network', { ...BLUE, network: '' }, 'network', ['""']],
    ['an invalid network', { ...BLUE, network: '-blue' }, 'network', ['"-blue"', 'begin with a letter or digit']],
    ['a long address space', { ...BLUE, addressSpace: 'a'.repeat(254) }, 'addressSpace', ['254', '253']],
    ['no subnets', subnets(), 'subnets', ['write 1 to 16']],
    ['too many subnets', subnets(...many(17, (i) => ({ cidr: `10.0.${String(i)}.0/24` }))), 'subnets', ['17', '16']],
    ['a subnet that is text', subnets('10.0.0.0/24'), 'subnets[0]', ['"10.0.0.0/24"', 'cidr']],
    ['a subnet without CIDR', subnets({}), 'subnets[0].cidr', ['absent', 'like 10.0.0.0/24']],
    ['host bits', subnets(B, { cidr: '10.1.0.5/24' }), 'subnets[1].cidr', ['"10.1.0.5/24"', 'write 10.1.0.0/24']],
    ...[
      ['0.0.0.0/0', '0.0.0.0/32'],
      ['127.0.1.0/24', '127.0.0.0/8'],
      ['230.0.0.0/8', '224.0.0.0/4'],
      ['255.255.255.254/31', '255.255.255.255/32'],
      ['::/64', '::/128'],
      ['::1/128', '::1/128'],
      ['::ffff:10.0.0.0/120', '::ffff:0.0.0.0/96'],
      ['ff02::/64', 'ff00::/8'],
    ].map(([cidr = '', part = '']) =>
      inSubnet(`the subnet ${cidr}`, { cidr }, 'cidr', `"${cidr}"`, `overlaps with ${part}, `, 'write another subnet'),
    ),
    [
      'subnets that overlap',
      subnets(B, { cidr: '10.0.0.128/25' }),
      'subnets[1].cidr',
      ['"10.0.0.128/25" overlaps with "10.0.0.0/24" (spec.subnets[0].cidr)', 'narrow'],
    ],
    ['one subnet twice', subnets(B, { cidr: '10.0.1.0/24' }, B), 'subnets[2].cidr', ['spec.subnets[0].cidr']],
    inSubnet('a range of another family', { ranges: ['::a00:5'] }, 'ranges[0]', '"::a00:5"', 'write an IPv4 address'),
    inSubnet(
      'a range beyond the end of the subnet',
      { ranges: ['10.0.0.5', '10.0.0.250-10.0.1.5'] },
      'ranges[1]',
      '"10.0.0.250-10.0.1.5"',
      'not within 10.0.0.0/24',
    ),
    inSubnet(
      'a range before the start of the subnet',
      { cidr: '10.0.1.0/24', exclude: ['10.0.0.255-10.0.1.2'] },
      'exclude[0]',
      'not within 10.0.1.0/24',
    ),
    inSubnet('a range backwards', { reserved: ['10.0.0.9-10.0.0.5'] }, 'reserved[0]', 'write 10.0.0.5-10.0.0.9'),
    inSubnet(
      'ranges that overlap',
      { ranges: ['10.0.0.9', '10.0.0.0/29', '10.0.0.7-10.0.0.8'] },
      'ranges[2]',
      '"10.0.0.7-10.0.0.8" overlaps with "10.0.0.0/29" (spec.subnets[0].ranges[1])',
    ),
    inSubnet('an empty list of ranges', { ranges: [] }, 'ranges', 'remove the field'),
    inSubnet('ranges that are not a list', { ranges: '10.0.0.5' }, 'ranges', '"10.0.0.5" is not a list'),
    inSubnet('a range that is a number', { exclude: [5] }, 'exclude[0]', '5 is not a string', 'like 10.0.0.5'),
    ...Object.entries({ ranges: 64, exclude: 256, reserved: 256 }).map(([list, most]) => {
      const ranges = many(most + 1, (i) => `10.0.${i >> 7}.${(i & 127) + 1}`);
      const fields = { cidr: '10.0.0.0/16', [list]: ranges };
      return inSubnet(`more than ${most} elements of ${list}`, fields, list, String(most + 1), String(most));
    }),
    inSubnet('an invalid gateway', { gateway: '10.0.0.1/24' }, 'gateway', '"10.0.0.1/24"', 'remove the prefix length'),
    inSubnet(
      'a gateway outside the subnet',
      { gateway: '10.0.1.1' },
      'gateway',
      '"10.0.1.1"',
      'not within 10.0.0.0/24',
    ),
    inSubnet(
      'a gateway of another family',
      { cidr: 'fd00::/64', gateway: '10.0.1.1' },
      'gateway',
      '"10.0.1.1"',
      'write an IPv6 address',
    ),
    inSubnet('the network address as gateway', { gateway: '10.0.0.0' }, 'gateway', 'network or broadcast'),
    inSubnet('the broadcast address as gateway', { gateway: '10.0.0.255' }, 'gateway', 'network or broadcast'),
    ...[-1, 86_401, 1.5, '60', Number.NaN].map((cooldownSeconds): Row => [
      `a cool-down of ${JSON.stringify(cooldownSeconds)}`,
      { ...BLUE, cooldownSeconds },
      'cooldownSeconds',
      [JSON.stringify(cooldownSeconds), '0 to 86400'],
    ]),
    ...['1d', '0s', '', 24].map((ttl): Row => [
      `a sticky time of ${JSON.stringify(ttl)}`,
      { ...BLUE, stickyMAC: { ttl } },
      'stickyMAC.ttl',
      [JSON.stringify(ttl), '24h'],
    ]),
    [
      'an empty namespaces list',
      { ...BLUE, namespaces: [] },
      'namespaces',
      ['serves no namespace', 'remove the field'],
    ],
    ['a namespace pattern', { ...BLUE, namespaces: ['a', 'tenant-*'] }, 'namespaces[1]', ['"tenant-*"', 'exact name']],
  ];
  for (const [name, spec, field, parts] of table) {
    it(`reports ${name}, with its field and what to do`, () => {
      const problems = problemsOf(spec);
      expect(problems.map((problem) => problem.field)).to.deep.equal([`spec.${field}`]);
      for (const part of parts) expect(problems[0]?.message).to.include(part);
    });
  }

  it('reports all problems at once', () => {
    const spec = {
      network: 'blue',
      subnets: [
        { cidr: '10.0.0.5/24', ranges: ['not read'] },
        { cidr: '10.1.0.0/24', ranges: ['x', '10.1.0.9-10.1.0.1'], exclude: ['10.2.0.1'], gateway: '::1' },
      ],
      cooldownSeconds: -1,
      stickyMAC: {},
      namespaces: ['A'],
    };
    expect(problemsOf(spec).map(({ field }) => field)).to.deep.equal([
      'spec.subnets[0].cidr',
      'spec.subnets[1].ranges[0]',
      'spec.subnets[1].ranges[1]',
      'spec.subnets[1].exclude[0]',
      'spec.subnets[1].gateway',
      'spec.namespaces[0]',
      'spec.cooldownSeconds',
      'spec.stickyMAC.ttl',
    ]);
  });

  it('reports each overlap of a chain with its neighbour', () => {
    const chain = subnets({ ...B, ranges: ['10.0.0.1-10.0.0.5', '10.0.0.4-10.0.0.9', '10.0.0.8-10.0.0.10'] });
    const fields = problemsOf(chain).map(({ field }) => field);
    expect(fields).to.deep.equal(['spec.subnets[0].ranges[1]', 'spec.subnets[0].ranges[2]']);
  });

  it('accepts subnets of two families with the same numbers', () => {
    expect(problemsOf(subnets(B, { cidr: '::a00:0/120' }))).to.deep.equal([]);
  });

  it('accepts exclude and reserved lists that are empty or overlap', () => {
    const overlap = ['10.0.0.5', '10.0.0.0/29'];
    expect(problemsOf(subnets({ ...B, exclude: [], reserved: [] }))).to.deep.equal([]);
    expect(problemsOf(subnets({ ...B, exclude: overlap, reserved: overlap }))).to.deep.equal([]);
  });

  it('never throws, for any input', () => {
    const key = fc.constantFrom('network', 'subnets', 'namespaces', 'stickyMAC', 'cooldownSeconds', 'addressSpace');
    const subnet = fc.dictionary(fc.constantFrom('cidr', 'ranges', 'exclude', 'gateway', 'reserved'), fc.anything());
    const spec = fc.oneof(
      fc.anything(),
      fc.dictionary(key, fc.anything()),
      fc
        .array(fc.record({ cidr: fc.constant('10.0.0.0/24'), ranges: fc.anything(), gateway: fc.anything() }))
        .map((all) => subnets(...all)),
      fc.array(subnet).map((all) => subnets(...all)),
    );
    fc.assert(fc.property(spec, (given) => Array.isArray(problemsOf(given))));
  });
});
