import { expect } from 'chai';
import fc from 'fast-check';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { parseAddress } from '../../addressing/address/address.js';
import type { AddressLease } from '../../api/address-lease.js';
import { NETWORKS_ANNOTATION, NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import { livePod, makeLargeCluster, whereaboutsNad } from '../testing/migration-world.js';
import type { MigrationObservation } from './plan-types.js';
import { planMigration } from './plan.js';
import { formatMigrationPlan } from './print.js';

const json = fc.jsonValue({ maxDepth: 3 });
/** Mostly what it should be, and now and then anything. */
const often = <T>(sane: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 5, arbitrary: sane }, { weight: 1, arbitrary: json });

const key = fc.constantFrom('a/p', 'a/q', 'b/p', 'a/gone');
const allocation = often(
  fc.record(
    { id: often(fc.constantFrom('c1', 'c2', '')), podref: often(key), ifname: often(fc.constantFrom('net1', 'net2')) },
    { requiredKeys: [] },
  ),
);
const offset = fc.oneof(
  { weight: 6, arbitrary: fc.nat(12).map(String) },
  { weight: 1, arbitrary: fc.string() },
  { weight: 1, arbitrary: fc.constantFrom('-1', '1e3', '9'.repeat(40), ' 5', '05', '300') },
);
const RANGES = ['10.0.0.0/24', '10.0.0.7/24', 'fd00::/64', '10.0.0.10-10.0.0.20/24', '0.0.0.0/0', '::/0', 'what'];
const NAMES = [
  '10.0.0.0-16',
  '10.0.0.7-24',
  'fd00---64',
  'node-1-10.0.0.0-25',
  'lan-10.0.0.0-24',
  '10.0.0.5',
  'lan-10.0.0.5',
  'fd00--5',
  'x',
];
const named = (name: fc.Arbitrary<string>, spec: fc.Arbitrary<unknown>) =>
  fc
    .record({ name, spec })
    .map((given) => ({ metadata: { namespace: 'kube-system', name: given.name }, spec: given.spec }));
const allocations = often(fc.dictionary(offset, allocation));
const object = fc.oneof(
  named(fc.constant('10.0.0.0-24'), fc.record({ range: fc.constant('10.0.0.0/24'), allocations })),
  named(
    fc.oneof(fc.constantFrom(...NAMES), fc.string({ minLength: 1 })),
    often(fc.record({ range: often(fc.constantFrom(...RANGES)), allocations, podref: key }, { requiredKeys: [] })),
  ),
);
const slice = fc
  .record({ name: fc.constantFrom('blue', 'lan', 'x'), status: json })
  .map(({ name: called, status }) => ({ metadata: { namespace: 'kube-system', name: called }, status }));
const ipam = fc.record(
  {
    range: often(fc.constantFrom('10.0.0.0/24', '10.0.0.0/16', 'fd00::/64')),
    network_name: often(fc.constantFrom('lan', '')),
    node_slice_size: fc.constantFrom('/25'),
    exclude: often(fc.constantFrom(['10.0.0.7'])),
    gateway: often(fc.constantFrom('10.0.0.1')),
  },
  { requiredKeys: [] },
);
const SANE = whereaboutsNad('a/blue', { range: '10.0.0.0/24' });
const nad = fc.oneof(
  fc.record({ at: fc.constantFrom('a/red', 'b/blue'), ipam }).map((given) => whereaboutsNad(given.at, given.ipam)),
  json.map((value) => whereaboutsNad('b/json', value !== null && typeof value === 'object' ? value : {})),
  fc.string().map((text) => whereaboutsNad('b/text', `whereabouts ${text}`)),
);
const status = often(
  fc
    .constantFrom('10.0.0.5', '10.0.0.6', 'fd00::5', 'x')
    .map((address) => [{ name: 'a/blue', interface: 'net1', ips: [address], mac: '02:00:00:00:00:01' }]),
);
const pod: fc.Arbitrary<Pod> = fc
  .record({ at: key, reports: fc.boolean(), status, networks: often(fc.constant([{ name: 'blue' }])) })
  .map(({ at, reports, status: said, networks }) =>
    livePod(at, {
      annotations: {
        ...(reports && { [NETWORK_STATUS_ANNOTATION]: JSON.stringify(said) }),
        [NETWORKS_ANNOTATION]: JSON.stringify(networks),
      },
    }),
  );
const lease: fc.Arbitrary<AddressLease> = fc
  .record({ last: fc.nat(9), uid: fc.constantFrom('a/p-uid', 'other', undefined) })
  .map(({ last, uid }) => ({
    metadata: { name: leaseName('blue', parseAddress(`10.0.0.${last}`)), uid: 'u', resourceVersion: '1' },
    spec: {
      address: `10.0.0.${last}`,
      addressSpace: 'blue',
      pool: 'blue.a',
      ...(uid !== undefined && { owner: { kind: 'Pod', namespace: 'a', name: 'p', uid } }),
    },
  }));
const observed: fc.Arbitrary<MigrationObservation> = fc.record({
  nads: fc.array(nad, { maxLength: 3 }).chain((more) => fc.constantFrom([SANE, ...more], [SANE, ...more], more)),
  ipPools: fc.array(object, { maxLength: 4 }),
  reservations: fc.array(object, { maxLength: 4 }),
  slices: fc.array(slice, { maxLength: 2 }),
  pods: fc.uniqueArray(pod, { maxLength: 4, selector: ({ metadata }) => metadata.uid }),
  leases: fc.uniqueArray(lease, { maxLength: 4, selector: ({ metadata }) => metadata.name }),
  claims: fc.constant([]),
  pools: fc.constant([]),
});

describe('a migration plan for random objects', () => {
  it('can be printed, and leases each address once, from its pool, to an active pod', () => {
    fc.assert(
      fc.property(observed, (given) => {
        const plan = planMigration(given);
        expect(formatMigrationPlan(plan).join('\n')).not.to.match(/undefined|\[object/);
        const names = plan.leases.map((each) => each.name);
        expect(new Set(names).size).to.equal(names.length);
        const pools = new Set(plan.pools.map((each) => each.pool.metadata.name));
        const uids = new Set(given.pods.map(({ metadata }) => metadata.uid));
        for (const { request } of plan.leases) {
          expect(pools.has(request.pool)).to.equal(true);
          expect(uids.has(request.owner.uid)).to.equal(true);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it('accounts for each of ten thousand allocations and names the invalid ones', () => {
    const cluster = makeLargeCluster(10_000);
    const started = process.cpuUsage();
    const plan = planMigration(cluster);
    const { user } = process.cpuUsage(started);
    const count = (...reasons: string[]) => plan.leftOut.filter(({ reason }) => reasons.includes(reason)).length;
    expect(plan.leases).to.have.length(cluster.live);
    expect(count('pod-gone')).to.equal(cluster.gone);
    expect(count('unreadable', 'outside')).to.equal(cluster.broken);
    expect(plan.conflicts).to.deep.equal([]);
    expect(cluster.live + cluster.gone + cluster.broken).to.equal(10_000);
    // its cost grows with the number of allocations, not with its square
    expect(user / 1_000).to.be.lessThan(5_000);
  });

  it('is the same for the same objects', () => {
    fc.assert(
      fc.property(observed, (given) => {
        expect(formatMigrationPlan(planMigration(structuredClone(given)))).to.deep.equal(
          formatMigrationPlan(planMigration(given)),
        );
      }),
      { numRuns: 200 },
    );
  });
});
