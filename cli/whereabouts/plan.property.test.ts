import { expect } from 'chai';
import fc from 'fast-check';
import { leaseName } from '../../ipam/core/lease-name.js';
import { parseAddress } from '../../ipam/core/address.js';
import type { AddressLease } from '../../api/address-lease.js';
import { NETWORK_STATUS_ANNOTATION, NETWORKS_ANNOTATION } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import { livePod, movingNad } from '../../test/migration-world.js';
import { bigCluster } from '../../test/whereabouts-cluster.js';
import type { Observed } from './plan-types.js';
import { planMigration } from './plan.js';
import { printPlan } from './print.js';

const json = fc.jsonValue({ maxDepth: 3 });
const key = fc.constantFrom('a/p', 'a/q', 'b/p', 'a/gone');
const allocation = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record(
      {
        id: fc.oneof(fc.constantFrom('c1', 'c2', ''), json),
        podref: fc.oneof(key, json),
        ifname: fc.oneof(fc.constantFrom('net1', 'net2'), json),
      },
      { requiredKeys: [] },
    ),
  },
  { weight: 1, arbitrary: json },
);
const offset = fc.oneof(fc.nat(300).map(String), fc.string(), fc.constantFrom('-1', '1e3', '9'.repeat(40), ' 5', '05'));
const range = fc.oneof(
  fc.constantFrom('10.0.0.0/24', '10.0.0.7/24', 'fd00::/64', '10.0.0.10-10.0.0.20/24', '0.0.0.0/0', '::/0'),
  fc.string(),
  json,
);
const name = fc.oneof(
  fc.constantFrom(
    '10.0.0.0-24',
    '10.0.0.7-24',
    'fd00---64',
    'node-1-10.0.0.0-25',
    'lan-10.0.0.0-24',
    '10.0.0.5',
    'lan-10.0.0.5',
    'fd00--5',
  ),
  fc.string({ minLength: 1 }),
);
const spec = fc.oneof(
  { weight: 3, arbitrary: fc.record({ range, allocations: fc.dictionary(offset, allocation) }, { requiredKeys: [] }) },
  { weight: 1, arbitrary: json },
);
const object = fc
  .record({ name, spec })
  .map(({ name: called, spec: given }) => ({ metadata: { namespace: 'kube-system', name: called }, spec: given }));
const slice = fc
  .record({ name: fc.constantFrom('blue', 'lan', 'x'), status: json })
  .map(({ name: called, status }) => ({ metadata: { namespace: 'kube-system', name: called }, status }));
const ipam = fc.oneof(
  fc.record(
    {
      range: fc.oneof(fc.constantFrom('10.0.0.0/24', '10.0.0.0/16', 'fd00::/64'), json),
      network_name: fc.oneof(fc.constantFrom('lan', ''), json),
      node_slice_size: fc.constantFrom('/25'),
      exclude: fc.oneof(fc.constantFrom(['10.0.0.7']), json),
      gateway: fc.oneof(fc.constantFrom('10.0.0.1'), json),
    },
    { requiredKeys: [] },
  ),
  json.filter((value) => typeof value === 'object' && value !== null),
);
const nad = fc.oneof(
  fc.record({ at: fc.constantFrom('a/blue', 'a/red', 'b/blue'), ipam }).map((given) => movingNad(given.at, given.ipam)),
  fc
    .record({
      at: fc.constantFrom('a/x', 'b/y'),
      text: fc.oneof(
        fc.string(),
        json.map((value) => `whereabouts ${JSON.stringify(value)}`),
      ),
    })
    .map((given) => movingNad(given.at, given.text)),
);
const pod: fc.Arbitrary<Pod> = fc
  .record({ at: key, status: json, networks: json, address: fc.constantFrom('10.0.0.5', 'fd00::5', 'x') })
  .map(({ at, status, networks, address }) =>
    livePod(at, {
      has: { 'a/blue': [address] },
      annotations:
        Math.abs(address.length) % 2 === 0
          ? { [NETWORK_STATUS_ANNOTATION]: JSON.stringify(status), [NETWORKS_ANNOTATION]: JSON.stringify(networks) }
          : {},
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
const observed: fc.Arbitrary<Observed> = fc.record({
  nads: fc.array(nad, { maxLength: 4 }),
  ipPools: fc.array(object, { maxLength: 4 }),
  reservations: fc.array(object, { maxLength: 4 }),
  slices: fc.array(slice, { maxLength: 2 }),
  pods: fc.uniqueArray(pod, { maxLength: 4, selector: ({ metadata }) => metadata.uid }),
  leases: fc.uniqueArray(lease, { maxLength: 4, selector: ({ metadata }) => metadata.name }),
  claims: fc.constant([]),
  pools: fc.constant([]),
});

describe('a plan of moving over from whereabouts, whatever its objects hold', () => {
  it('is made and can be printed, and leases each address once, from its pool, to a pod that lives', () => {
    fc.assert(
      fc.property(observed, (given) => {
        const plan = planMigration(given);
        expect(printPlan(plan).join('\n')).not.to.match(/undefined|\[object/);
        const names = plan.leases.map((each) => each.name);
        expect(new Set(names).size).to.equal(names.length);
        const pools = new Set(plan.pools.map((each) => each.pool.metadata.name));
        const uids = new Set(given.pods.map(({ metadata }) => metadata.uid));
        for (const { request } of plan.leases) {
          expect(pools.has(request.pool)).to.equal(true);
          expect(uids.has(request.owner.uid)).to.equal(true);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('accounts for every allocation of ten thousand, the broken ones by name', () => {
    const cluster = bigCluster(10_000);
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
        expect(printPlan(planMigration(structuredClone(given)))).to.deep.equal(printPlan(planMigration(given)));
      }),
      { numRuns: 200 },
    );
  });
});
