import { expect } from 'chai';
import fc from 'fast-check';
import { blockRecord } from '../../test/objects/block-objects.js';
import { compiledPool, leaseOf, type LeaseOptions } from '../../test/objects/lease-objects.js';
import type { PoolGiven } from '../../test/objects/pool-objects.js';
import type { AddressLease } from '../../api/address-lease.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { formatCidr } from '../../addressing/address/cidr.js';
import { type AddressMap, addressMapOf, formatRange, type AddressRun } from './address-map.js';
import { SpaceLeases, countFamily } from './summary.js';
import { STATE_NAMES } from '../../addressing/address-states.js';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const AN_HOUR = 3_600_000;
const MAC = '02:00:00:00:00:01';

function lease(address: string, options: LeaseOptions & { pool?: string; reservation?: true } = {}): LeaseRecord {
  const { pool, reservation, ...rest } = options;
  const object: AddressLease = leaseOf(address, 1, rest);
  const { owner: _owner, ...unowned } = object.spec;
  return readLease({ ...object, spec: { ...(reservation ? unowned : object.spec), ...(pool && { pool }) } });
}

/** The runs of all subnets as `range state`, and `@node`. */
function shown({ subnets }: AddressMap): string[] {
  return subnets.flatMap(({ cidr, runs }) =>
    runs.map((run) => `${formatRange(run, cidr.family)} ${run.state}${run.node ? ` @${run.node}` : ''}`),
  );
}

function countRuns(runs: readonly AddressRun[]): Record<string, bigint> {
  const counts = Object.fromEntries(STATE_NAMES.map((state) => [state, 0n]));
  for (const { first, last, state } of runs) counts[state]! += last - first + 1n;
  return counts;
}

describe('the address map of a pool', () => {
  const cases: { title: string; pool?: PoolGiven; leases?: LeaseRecord[]; expected: string[] }[] = [
    {
      title: 'excludes the addresses that the pool never allocates',
      pool: {
        subnets: [{ cidr: '10.0.0.0/28', gateway: '10.0.0.1', exclude: ['10.0.0.4'], ranges: ['10.0.0.1-10.0.0.6'] }],
      },
      expected: [
        '10.0.0.0-10.0.0.1 excluded',
        '10.0.0.2-10.0.0.3 free',
        '10.0.0.4 excluded',
        '10.0.0.5-10.0.0.6 free',
        '10.0.0.7-10.0.0.15 excluded',
      ],
    },
    {
      title: 'tells apart allocated, cooling, sticky and reserved addresses',
      pool: { stickyMAC: { ttl: '2h', retain: true } },
      leases: [
        lease('10.0.0.1'),
        lease('10.0.0.2', { releasedAt: NOW - 10_000, mac: MAC }),
        lease('10.0.0.3', { releasedAt: NOW - AN_HOUR, mac: MAC }),
        lease('10.0.0.4', { reservation: true, mac: MAC }),
        lease('10.0.0.5', { reserved: true, mac: MAC, releasedAt: NOW - AN_HOUR }),
      ],
      expected: [
        '10.0.0.0 excluded',
        '10.0.0.1 allocated',
        '10.0.0.2 cooling',
        '10.0.0.3 sticky',
        '10.0.0.4 reserved',
        '10.0.0.5 cooling',
        '10.0.0.6 free',
        '10.0.0.7 excluded',
      ],
    },
    {
      title: 'shows an address that is no longer sticky as cooling until its lease is deleted',
      leases: [lease('10.0.0.1', { releasedAt: NOW - AN_HOUR, mac: MAC })],
      expected: ['10.0.0.0 excluded', '10.0.0.1 cooling', '10.0.0.2-10.0.0.6 free', '10.0.0.7 excluded'],
    },
    {
      title: 'joins neighbours of one state',
      leases: ['10.0.0.3', '10.0.0.1', '10.0.0.2'].map((address) => lease(address)),
      expected: ['10.0.0.0 excluded', '10.0.0.1-10.0.0.3 allocated', '10.0.0.4-10.0.0.6 free', '10.0.0.7 excluded'],
    },
    {
      title: 'shows addresses that are allocated only on request as reserved, unless they are allocated',
      pool: { subnets: [{ cidr: '10.0.0.0/29', reserved: ['10.0.0.1-10.0.0.3'] }] },
      leases: [lease('10.0.0.2')],
      expected: [
        '10.0.0.0 excluded',
        '10.0.0.1 reserved',
        '10.0.0.2 allocated',
        '10.0.0.3 reserved',
        '10.0.0.4-10.0.0.6 free',
        '10.0.0.7 excluded',
      ],
    },
    {
      title: 'tells apart addresses of draining ranges that are in use and those that are not',
      pool: { subnets: [{ cidr: '10.0.0.0/29', draining: ['10.0.0.4-10.0.0.6'] }] },
      leases: [lease('10.0.0.4'), lease('10.0.0.5', { releasedAt: NOW - 1_000 })],
      expected: [
        '10.0.0.0 excluded',
        '10.0.0.1-10.0.0.3 free',
        '10.0.0.4 draining',
        '10.0.0.5 cooling',
        '10.0.0.6 drained',
        '10.0.0.7 excluded',
      ],
    },
    {
      title: 'shows an address that the pool may no longer allocate as allocated while it has an owner',
      pool: { subnets: [{ cidr: '10.0.0.0/29', exclude: ['10.0.0.4-10.0.0.6'] }] },
      leases: [lease('10.0.0.5')],
      expected: [
        ...['10.0.0.0 excluded', '10.0.0.1-10.0.0.3 free', '10.0.0.4 excluded', '10.0.0.5 allocated'],
        '10.0.0.6-10.0.0.7 excluded',
      ],
    },
    {
      title: 'shows addresses that another pool of the address space leases',
      leases: [lease('10.0.0.1', { pool: 'red' })],
      expected: ['10.0.0.0 excluded', '10.0.0.1 other-pool', '10.0.0.2-10.0.0.6 free', '10.0.0.7 excluded'],
    },
    {
      title: 'has a part for each subnet',
      pool: { subnets: [{ cidr: '10.0.0.0/31' }, { cidr: '2001:db8::/64' }] },
      leases: [lease('2001:db8::5')],
      expected: [
        '10.0.0.0-10.0.0.1 free',
        '2001:db8:: excluded',
        '2001:db8::1-2001:db8::4 free',
        '2001:db8::5 allocated',
        '2001:db8::6-2001:db8::ffff:ffff:ffff:ffff free',
      ],
    },
  ];
  for (const { title, pool, leases = [], expected } of cases) {
    it(title, () => {
      expect(shown(addressMapOf(compiledPool(pool), { leases }, NOW))).to.deep.equal(expected);
    });
  }

  it('names the node to whose block addresses belong, and ignores blocks of other pools', () => {
    const pool = compiledPool({ cidr: '10.0.0.0/24', blockSize: { ipv4: 28 } });
    const blocks = [
      blockRecord('10.0.0.16/28', 1, { node: 'n1' }),
      blockRecord('10.0.0.32/28', 1, { node: 'n2' }),
      blockRecord('10.0.0.48/28', 1, { pool: 'red' }),
    ];
    expect(shown(addressMapOf(pool, { leases: [lease('10.0.0.20')], blocks }, NOW))).to.deep.equal([
      '10.0.0.0 excluded',
      '10.0.0.1-10.0.0.15 free',
      '10.0.0.16-10.0.0.19 free @n1',
      '10.0.0.20 allocated @n1',
      '10.0.0.21-10.0.0.31 free @n1',
      '10.0.0.32-10.0.0.47 free @n2',
      '10.0.0.48-10.0.0.254 free',
      '10.0.0.255 excluded',
    ]);
  });

  it('collects the leases of the pool that are in none of its subnets or in another address space', () => {
    const leases = [lease('10.9.0.1'), lease('10.9.0.2', { pool: 'red' })];
    const { outside } = addressMapOf(compiledPool(), { leases }, NOW);
    expect(outside.map(({ metadata }) => metadata.name)).to.deep.equal(['blue.10-9-0-1']);
    const moved = addressMapOf(compiledPool({ addressSpace: 'new' }), { leases: [lease('10.0.0.1')] }, NOW);
    expect(moved.outside).to.have.length(1);
    expect(shown(moved)).to.include('10.0.0.1-10.0.0.6 free');
  });

  it('has few runs for an IPv6 /64 and a /16 with many leases', () => {
    const pool = compiledPool({ subnets: [{ cidr: '10.0.0.0/16' }, { cidr: '2001:db8::/64' }] });
    const leases = Array.from({ length: 1_000 }, (_, index) => [
      lease(`10.0.${index >> 8}.${index & 255 || 1}`),
      lease(`2001:db8::${(index * 3 + 1).toString(16)}`),
    ]).flat();
    const { subnets } = addressMapOf(pool, { leases }, NOW);
    for (const { runs } of subnets) expect(runs.length).to.be.lessThan(2_010);
  });

  it('covers each subnet without gaps, and agrees with a check of each address', () => {
    const offsets = fc.array(fc.integer({ min: 0, max: 63 }), { maxLength: 3 });
    const addresses = fc.record({ exclude: offsets, reserved: offsets, draining: offsets });
    const leased = fc.uniqueArray(
      fc.record({
        offset: fc.integer({ min: 0, max: 63 }),
        kind: fc.constantFrom('held', 'released', 'quarantined', 'other'),
      }),
      { selector: ({ offset }) => offset },
    );
    fc.assert(
      fc.property(addresses, leased, (spec, given) => {
        const text = (offset: number) => `10.0.0.${offset}`;
        const lists = Object.entries(spec).filter(([, list]) => list.length > 0);
        const subnet = {
          cidr: '10.0.0.0/26',
          ...Object.fromEntries(lists.map(([key, list]) => [key, [...new Set(list)].map(text)])),
        };
        const pool = compiledPool({ subnets: [subnet] });
        const leases = given.map(({ offset, kind }) =>
          lease(text(offset), {
            ...(kind === 'released' && { releasedAt: NOW }),
            ...(kind === 'quarantined' && { takenBy: MAC }),
            ...(kind === 'other' && { pool: 'red' }),
          }),
        );
        const [map] = addressMapOf(pool, { leases }, NOW).subnets;
        const runs = map!.runs;
        // pools are counted without a map
        expect(countFamily(pool, 4, new SpaceLeases(leases), NOW)).to.deep.equal(countRuns(runs));
        expect(formatCidr(map!.cidr)).to.equal('10.0.0.0/26');
        let next = map!.cidr.base;
        for (const run of runs) {
          expect(run.first).to.equal(next);
          next = run.last + 1n;
        }
        expect(next).to.equal(map!.cidr.base + 64n);
        const [{ open, requestable, leasable }] = pool.subnets as [(typeof pool.subnets)[number]];
        for (let offset = 0; offset < 64; offset++) {
          const value = map!.cidr.base + BigInt(offset);
          const there = given.find((each) => each.offset === offset)?.kind;
          const inDraining = leasable.has(value) && !requestable.has(value);
          const unleased = open.has(value)
            ? 'free'
            : requestable.has(value)
              ? 'reserved'
              : inDraining
                ? 'drained'
                : 'excluded';
          const held = inDraining ? 'draining' : 'allocated';
          const leasedStates: Partial<Record<string, string>> = {
            ...{ held, released: 'cooling', quarantined: 'quarantined', other: 'other-pool' },
          };
          const expected = leasedStates[there ?? ''] ?? unleased;
          expect(runs.find((run) => run.first <= value && value <= run.last)?.state).to.equal(expected);
          expect(STATE_NAMES).to.include(expected);
        }
      }),
    );
  });
});
