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
const many = (count: number, each: (i: number) => unknown): unknown[] =>
  Array.from({ length: count }, (_, i) => each(i));

describe('compilePool of an invalid spec', () => {
  /** The name, the spec, the field below `spec`, and parts of the message. */
  type Row = [string, unknown, string, string[]];
  const table: Row[] = [
    ['no network', { subnets: [B] }, 'network', ['absent', 'like blue']],
    ['an empty network', { network: '', subnets: [B] }, 'network', ['""']],
    [
      'a network that CNI would refuse',
      { network: '-blue', subnets: [B] },
      'network',
      ['"-blue"', 'begin with a letter or digit'],
    ],
    [
      'a long address space',
      { network: 'b', addressSpace: 'a'.repeat(254), subnets: [B] },
      'addressSpace',
      ['254', '253'],
    ],
    ['no subnets', subnets(), 'subnets', ['write 1 to 16']],
    ['too many subnets', subnets(...many(17, (i) => ({ cidr: `10.0.${String(i)}.0/24` }))), 'subnets', ['17', '16']],
    ['a subnet that is text', subnets('10.0.0.0/24'), 'subnets[0]', ['"10.0.0.0/24"', 'cidr']],
    ['a subnet without CIDR', subnets({}), 'subnets[0].cidr', ['absent', 'like 10.0.0.0/24']],
    [
      'a subnet with host bits',
      subnets(B, { cidr: '10.1.0.5/24' }),
      'subnets[1].cidr',
      ['"10.1.0.5/24"', 'write 10.1.0.0/24'],
    ],
    ...[
      ['0.0.0.0/0', '0.0.0.0/32'],
      ['127.0.1.0/24', '127.0.0.0/8'],
      ['230.0.0.0/8', '224.0.0.0/4'],
      ['::/64', '::/128'],
      ['::1/128', '::1/128'],
      ['::ffff:10.0.0.0/120', '::ffff:0.0.0.0/96'],
      ['ff02::/64', 'ff00::/8'],
    ].map(([cidr = '', part = '']): Row => [
      `the subnet ${cidr}`,
      subnets({ cidr }),
      'subnets[0].cidr',
      [`"${cidr}"`, `overlaps with ${part}, `, 'write another subnet'],
    ]),
    [
      'subnets that overlap',
      subnets(B, { cidr: '10.0.0.128/25' }),
      'subnets[1].cidr',
      ['"10.0.0.128/25" overlaps with "10.0.0.0/24" (spec.subnets[0].cidr)', 'narrow'],
    ],
    ['one subnet twice', subnets(B, { cidr: '10.0.1.0/24' }, B), 'subnets[2].cidr', ['spec.subnets[0].cidr']],
    [
      'a range of another family',
      subnets({ ...B, ranges: ['::a00:5'] }),
      'subnets[0].ranges[0]',
      ['"::a00:5"', 'write an IPv4 address'],
    ],
    [
      'a range beyond the end of the subnet',
      subnets({ ...B, ranges: ['10.0.0.5', '10.0.0.250-10.0.1.5'] }),
      'subnets[0].ranges[1]',
      ['"10.0.0.250-10.0.1.5"', 'not within 10.0.0.0/24'],
    ],
    [
      'a range before the start of the subnet',
      subnets({ cidr: '10.0.1.0/24', exclude: ['10.0.0.255-10.0.1.2'] }),
      'subnets[0].exclude[0]',
      ['not within 10.0.1.0/24'],
    ],
    [
      'a range backwards',
      subnets({ ...B, reserved: ['10.0.0.9-10.0.0.5'] }),
      'subnets[0].reserved[0]',
      ['write 10.0.0.5-10.0.0.9'],
    ],
    [
      'ranges that overlap',
      subnets({ ...B, ranges: ['10.0.0.9', '10.0.0.0/29', '10.0.0.7-10.0.0.8'] }),
      'subnets[0].ranges[2]',
      ['"10.0.0.7-10.0.0.8" overlaps with "10.0.0.0/29" (spec.subnets[0].ranges[1])'],
    ],
    ['an empty list of ranges', subnets({ ...B, ranges: [] }), 'subnets[0].ranges', ['remove the field']],
    [
      'ranges that are not a list',
      subnets({ ...B, ranges: '10.0.0.5' }),
      'subnets[0].ranges',
      ['"10.0.0.5" is not a list'],
    ],
    [
      'a range that is a number',
      subnets({ ...B, exclude: [5] }),
      'subnets[0].exclude[0]',
      ['5 is not a string', 'like 10.0.0.5'],
    ],
    ...(
      [
        ['ranges', 64],
        ['exclude', 256],
        ['reserved', 256],
      ] as const
    ).map(([list, most]): Row => [
      `more than ${String(most)} elements of ${list}`,
      subnets({
        cidr: '10.0.0.0/16',
        [list]: many(most + 1, (i) => `10.0.${String(i >> 7)}.${String((i & 127) + 1)}`),
      }),
      `subnets[0].${list}`,
      [String(most + 1), String(most)],
    ]),
    [
      'an invalid gateway',
      subnets({ ...B, gateway: '10.0.0.1/24' }),
      'subnets[0].gateway',
      ['"10.0.0.1/24"', 'remove the prefix length'],
    ],
    [
      'a gateway outside the subnet',
      subnets({ ...B, gateway: '10.0.1.1' }),
      'subnets[0].gateway',
      ['"10.0.1.1"', 'not within 10.0.0.0/24'],
    ],
    [
      'a gateway of another family',
      subnets({ cidr: '2001:db8::/64', gateway: '10.0.1.1' }),
      'subnets[0].gateway',
      ['"10.0.1.1"', 'write an IPv6 address'],
    ],
    [
      'the network address as gateway',
      subnets({ ...B, gateway: '10.0.0.0' }),
      'subnets[0].gateway',
      ['network or broadcast'],
    ],
    [
      'the broadcast address as gateway',
      subnets({ ...B, gateway: '10.0.0.255' }),
      'subnets[0].gateway',
      ['network or broadcast'],
    ],
    ...[-1, 86_401, 1.5, '60', Number.NaN].map((cooldownSeconds): Row => [
      `a cool-down of ${JSON.stringify(cooldownSeconds)}`,
      { network: 'blue', subnets: [B], cooldownSeconds },
      'cooldownSeconds',
      [JSON.stringify(cooldownSeconds), '0 to 86400'],
    ]),
    ...['1d', '0s', '', 24].map((ttl): Row => [
      `a sticky time of ${JSON.stringify(ttl)}`,
      { network: 'blue', subnets: [B], stickyMAC: { ttl } },
      'stickyMAC.ttl',
      [JSON.stringify(ttl), '24h'],
    ]),
    [
      'an empty list of namespaces',
      { network: 'blue', subnets: [B], namespaces: [] },
      'namespaces',
      ['serves no namespace', 'remove the field'],
    ],
    [
      'a pattern of namespaces',
      { network: 'blue', subnets: [B], namespaces: ['a', 'tenant-*'] },
      'namespaces[1]',
      ['"tenant-*"', 'exact name'],
    ],
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
    expect(problemsOf(chain).map(({ field }) => field)).to.deep.equal([
      'spec.subnets[0].ranges[1]',
      'spec.subnets[0].ranges[2]',
    ]);
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
