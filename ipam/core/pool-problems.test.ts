import { expect } from 'chai';
import fc from 'fast-check';
import type { AddressPool } from '../../api/address-pool.js';
import { compilePool } from './pool.js';
import type { PoolProblem } from './pool.js';

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
  const table: { name: string; spec: unknown; field: string; parts: string[] }[] = [
    { name: 'no network', spec: { subnets: [B] }, field: 'spec.network', parts: ['absent', 'like blue'] },
    { name: 'an empty network', spec: { network: '', subnets: [B] }, field: 'spec.network', parts: ['""'] },
    {
      name: 'a network that CNI would refuse',
      spec: { network: '-blue', subnets: [B] },
      field: 'spec.network',
      parts: ['"-blue"', 'begin with a letter or digit'],
    },
    {
      name: 'a long address space',
      spec: { network: 'b', addressSpace: 'a'.repeat(254), subnets: [B] },
      field: 'spec.addressSpace',
      parts: ['254', '253'],
    },
    { name: 'no subnets', spec: subnets(), field: 'spec.subnets', parts: ['write 1 to 16'] },
    {
      name: 'too many subnets',
      spec: subnets(...many(17, (i) => ({ cidr: `10.0.${String(i)}.0/24` }))),
      field: 'spec.subnets',
      parts: ['17', '16'],
    },
    {
      name: 'a subnet that is text',
      spec: subnets('10.0.0.0/24'),
      field: 'spec.subnets[0]',
      parts: ['"10.0.0.0/24"', 'cidr'],
    },
    {
      name: 'a subnet without CIDR',
      spec: subnets({}),
      field: 'spec.subnets[0].cidr',
      parts: ['absent', 'like 10.0.0.0/24'],
    },
    {
      name: 'a subnet with host bits',
      spec: subnets(B, { cidr: '10.1.0.5/24' }),
      field: 'spec.subnets[1].cidr',
      parts: ['"10.1.0.5/24"', 'write 10.1.0.0/24'],
    },
    ...[
      ['0.0.0.0/0', '0.0.0.0/32'],
      ['127.0.1.0/24', '127.0.0.0/8'],
      ['230.0.0.0/8', '224.0.0.0/4'],
      ['::/64', '::/128'],
      ['::1/128', '::1/128'],
      ['::ffff:10.0.0.0/120', '::ffff:0.0.0.0/96'],
      ['ff02::/64', 'ff00::/8'],
    ].map(([cidr = '', part = '']) => ({
      name: `the subnet ${cidr}`,
      spec: subnets({ cidr }),
      field: 'spec.subnets[0].cidr',
      parts: [`"${cidr}"`, `overlaps with ${part}, `, 'write another subnet'],
    })),
    {
      name: 'subnets that overlap',
      spec: subnets(B, { cidr: '10.0.0.128/25' }),
      field: 'spec.subnets[1].cidr',
      parts: ['"10.0.0.128/25" overlaps with "10.0.0.0/24" (spec.subnets[0].cidr)', 'narrow'],
    },
    {
      name: 'one subnet twice',
      spec: subnets(B, { cidr: '10.0.1.0/24' }, B),
      field: 'spec.subnets[2].cidr',
      parts: ['spec.subnets[0].cidr'],
    },
    {
      name: 'a range of another family',
      spec: subnets({ ...B, ranges: ['::a00:5'] }),
      field: 'spec.subnets[0].ranges[0]',
      parts: ['"::a00:5"', 'write an IPv4 address'],
    },
    {
      name: 'a range beyond the end of the subnet',
      spec: subnets({ ...B, ranges: ['10.0.0.5', '10.0.0.250-10.0.1.5'] }),
      field: 'spec.subnets[0].ranges[1]',
      parts: ['"10.0.0.250-10.0.1.5"', 'not within 10.0.0.0/24'],
    },
    {
      name: 'a range before the start of the subnet',
      spec: subnets({ cidr: '10.0.1.0/24', exclude: ['10.0.0.255-10.0.1.2'] }),
      field: 'spec.subnets[0].exclude[0]',
      parts: ['not within 10.0.1.0/24'],
    },
    {
      name: 'a range backwards',
      spec: subnets({ ...B, reserved: ['10.0.0.9-10.0.0.5'] }),
      field: 'spec.subnets[0].reserved[0]',
      parts: ['write 10.0.0.5-10.0.0.9'],
    },
    {
      name: 'ranges that overlap',
      spec: subnets({ ...B, ranges: ['10.0.0.9', '10.0.0.0/29', '10.0.0.7-10.0.0.8'] }),
      field: 'spec.subnets[0].ranges[2]',
      parts: ['"10.0.0.7-10.0.0.8" overlaps with "10.0.0.0/29" (spec.subnets[0].ranges[1])'],
    },
    {
      name: 'an empty list of ranges',
      spec: subnets({ ...B, ranges: [] }),
      field: 'spec.subnets[0].ranges',
      parts: ['remove the field'],
    },
    {
      name: 'ranges that are not a list',
      spec: subnets({ ...B, ranges: '10.0.0.5' }),
      field: 'spec.subnets[0].ranges',
      parts: ['"10.0.0.5" is not a list'],
    },
    {
      name: 'a range that is a number',
      spec: subnets({ ...B, exclude: [5] }),
      field: 'spec.subnets[0].exclude[0]',
      parts: ['5 is not a string', 'like 10.0.0.5'],
    },
    ...(
      [
        ['ranges', 64],
        ['exclude', 256],
        ['reserved', 256],
      ] as const
    ).map(([list, most]) => ({
      name: `more than ${String(most)} elements of ${list}`,
      spec: subnets({
        cidr: '10.0.0.0/16',
        [list]: many(most + 1, (i) => `10.0.${String(i >> 7)}.${String((i & 127) + 1)}`),
      }),
      field: `spec.subnets[0].${list}`,
      parts: [String(most + 1), String(most)],
    })),
    {
      name: 'an invalid gateway',
      spec: subnets({ ...B, gateway: '10.0.0.1/24' }),
      field: 'spec.subnets[0].gateway',
      parts: ['"10.0.0.1/24"', 'remove the prefix length'],
    },
    {
      name: 'a gateway outside the subnet',
      spec: subnets({ ...B, gateway: '10.0.1.1' }),
      field: 'spec.subnets[0].gateway',
      parts: ['"10.0.1.1"', 'not within 10.0.0.0/24'],
    },
    {
      name: 'a gateway of another family',
      spec: subnets({ cidr: '2001:db8::/64', gateway: '10.0.1.1' }),
      field: 'spec.subnets[0].gateway',
      parts: ['"10.0.1.1"', 'write an IPv6 address'],
    },
    {
      name: 'the network address as gateway',
      spec: subnets({ ...B, gateway: '10.0.0.0' }),
      field: 'spec.subnets[0].gateway',
      parts: ['network or broadcast'],
    },
    {
      name: 'the broadcast address as gateway',
      spec: subnets({ ...B, gateway: '10.0.0.255' }),
      field: 'spec.subnets[0].gateway',
      parts: ['network or broadcast'],
    },
    ...[-1, 86_401, 1.5, '60', Number.NaN].map((cooldownSeconds) => ({
      name: `a cool-down of ${JSON.stringify(cooldownSeconds)}`,
      spec: { network: 'blue', subnets: [B], cooldownSeconds },
      field: 'spec.cooldownSeconds',
      parts: [JSON.stringify(cooldownSeconds), '0 to 86400'],
    })),
    ...['1d', '0s', '', 24].map((ttl) => ({
      name: `a sticky time of ${JSON.stringify(ttl)}`,
      spec: { network: 'blue', subnets: [B], stickyMAC: { ttl } },
      field: 'spec.stickyMAC.ttl',
      parts: [JSON.stringify(ttl), '24h'],
    })),
    {
      name: 'an empty list of namespaces',
      spec: { network: 'blue', subnets: [B], namespaces: [] },
      field: 'spec.namespaces',
      parts: ['serves no namespace', 'remove the field'],
    },
    {
      name: 'a pattern of namespaces',
      spec: { network: 'blue', subnets: [B], namespaces: ['a', 'tenant-*'] },
      field: 'spec.namespaces[1]',
      parts: ['"tenant-*"', 'exact name'],
    },
  ];
  for (const { name, spec, field, parts } of table) {
    it(`reports ${name}, with its field and what to do`, () => {
      const problems = problemsOf(spec);
      expect(problems.map((problem) => problem.field)).to.deep.equal([field]);
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
