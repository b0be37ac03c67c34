import { formatCount } from '../../addressing/address-states.js';
import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import { blockRecord } from '../../test/objects/block-objects.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { readLease } from '../../addressing/lease/lease.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { textOf } from '../terminal.js';
import { MemoryCluster } from '../testing/memory-cluster.js';
import { type PoolUse, listPools, readUsage } from './pools.js';

const lease = (address: string, releasedAt?: number) =>
  readLease(leaseOf(address, 1, releasedAt === undefined ? {} : { releasedAt }));

function withCondition(pool: AddressPool, condition: object): AddressPool {
  return { ...pool, status: { conditions: [condition] } } as AddressPool;
}

const POOLS = [
  adminPool('blue', { subnets: [{ cidr: '10.0.0.0/29' }, { cidr: '2001:db8::/64' }], namespaces: ['a', 'b', 'c'] }),
  withCondition(adminPool('red.a', { network: 'red', nadNamespace: 'a' }), {
    ...{ type: 'Ready', status: 'False', reason: 'Conflict', message: 'an older pool serves it' },
  }),
  withCondition(adminPool('bad', { network: 'bad', subnets: [] }), {
    ...{ type: 'Ready', status: 'False', reason: 'InvalidSpec', message: 'spec.subnets is empty' },
  }),
];
const USAGE = {
  pools: POOLS,
  leases: [
    lease('10.0.0.1'),
    lease('10.0.0.2'),
    lease('10.0.0.3', 900),
    readLease(leaseOf('10.0.0.4', 1, { takenBy: '02:00:00:00:00:99' })),
  ],
  blocks: [blockRecord('10.0.0.0/29', 1)],
};
const NONE = { sticky: 0, reserved: 0, quarantined: 0, draining: 0 };
const lines = (isWide = false, isUnicode = false) =>
  listPools(USAGE, 1_000, isUnicode)
    .lines(isWide)
    .map((line) => textOf(line).trim().split(/ {3,}/).join(' | '));

describe('the list of pools', () => {
  it('has a line for each family of a pool, and one for an invalid pool', () => {
    expect(lines()).to.deep.equal([
      'NAME | NETWORK | NAMESPACES | FAMILY | FREE | ALLOCATED | COOLING | IN USE | BLOCKS | DRAINING | PROBLEMS',
      'bad | bad | all | 0 | InvalidSpec',
      'blue | blue | a and 2 more | IPv4 | 2 | 2 | 1 | ######---- 66% | 1 | 0',
      'blue | blue | a and 2 more | IPv6 | 9.0e15 | 0 | 0 | ---------- 0% | 1 | 0',
      'red.a | red | a | IPv4 | 254 | 0 | 0 | ---------- 0% | 0 | 0 | Conflict',
    ]);
  });

  it('has the messages of problems if it is wide, and blocks for bars on a terminal', () => {
    expect(lines(true)[1]).to.match(/InvalidSpec \| spec.subnets is empty$/);
    expect(lines(false, true)[2]).to.include('██████░░░░ 66%');
  });

  it('has no problem of a pool that is being deleted, which nobody need act on', () => {
    const [, , deleted] = POOLS.map(({ metadata, ...pool }) => ({
      ...pool,
      metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    }));
    const shown = listPools({ ...USAGE, pools: [deleted!] }, 1_000, false)
      .lines(true)
      .map(textOf)
      .join('\n');
    expect(shown).to.include('bad').and.not.include('InvalidSpec');
  });

  it('has all counts for programs', () => {
    const [, blue] = listPools(USAGE, 1_000, false).data as PoolUse[];
    expect(blue).to.deep.equal({
      ...{ name: 'blue', network: 'blue', namespaces: ['a', 'b', 'c'], blocks: 1, problems: [] },
      families: [
        { ...{ family: 'IPv4', capacity: 6, free: 2, allocated: 2, cooling: 1, ...NONE, quarantined: 1 } },
        { ...{ family: 'IPv6', capacity: 2 ** 53 - 1, free: 2 ** 53 - 1 }, ...{ allocated: 0, cooling: 0, ...NONE } },
      ],
    });
  });

  it('does not look at each lease of an address space once more for each pool of it', () => {
    let looks = 0;
    const leases = Array.from({ length: 100 }, (_, index) => {
      const record = lease(`10.0.0.${index + 1}`);
      return Object.defineProperty({ ...record }, 'address', { get: () => ((looks += 1), record.address) });
    });
    const looksOf = (count: number) => {
      // as the NADs of a network in many namespaces
      const derived = (index: number) => adminPool(`blue.ns-${index}`, { network: 'blue', addressSpace: 'blue' });
      const pools = Array.from({ length: count }, (_, index) => derived(index));
      looks = 0;
      const [first] = listPools({ pools, leases, blocks: [] }, 0, false).data as PoolUse[];
      expect(first?.families[0]).to.include({ free: 154, allocated: 0, capacity: 154 });
      return looks;
    };
    expect(looksOf(40)).to.equal(looksOf(1));
  });

  it('are read with few requests if there are many leases', async () => {
    const cluster = new MemoryCluster().put(
      ADDRESS_LEASES,
      ...Array.from({ length: 2_001 }, (_, n) => leaseOf(`10.1.${n >> 8}.${n & 255}`, 1)),
    );
    expect((await readUsage(cluster.client)).leases).to.have.length(2_001);
    expect(cluster.requests.filter(({ path }) => path.endsWith('/addressleases'))).to.have.length(3);
  });

  it('says that there are none', () => {
    expect(listPools({ pools: [], leases: [], blocks: [] }, 0, false).lines(false)).to.deep.equal(['no pools found']);
  });

  it('writes huge counts as a power of ten', () => {
    expect([0, 9_999_999, 10_000_000, undefined].map(formatCount)).to.deep.equal(['0', '9999999', '1.0e7', '']);
  });
});
