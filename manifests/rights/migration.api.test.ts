import { join } from 'node:path';
import { expect } from 'chai';
import { POOL_NAD_NAMESPACE, NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import { IP_POOLS } from '../../cli/whereabouts/plan-types.js';
import { type MigrateOptions, migrateWhereabouts } from '../../cli/whereabouts/migrate.js';
import { listIps } from '../../cli/ips.js';
import { textOf } from '../../cli/terminal.js';
import { reserve, unreserve } from '../../cli/reserve.js';
import { createCrds } from '../../bed/control-plane/crds.js';
import { createAll, readManifests } from '../../bed/control-plane/objects.js';
import { until } from '../../bed/processes/wait.js';
import { readLease, releaseLease } from '../../addressing/lease/lease.js';
import type { Client } from '../../kube/client.js';
import { systemClock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, NETWORK_ATTACHMENT_DEFINITIONS, PODS } from '../../kube/resources.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { type PolicyCluster, expectDenial, usePolicyCluster } from '../testing/policy-cluster.js';
import { roleBindingOf } from '../testing/role-binding.js';

const NAMESPACE = 'kube-system';
const RANGE = '10.74.0.0/24';
const DRY: MigrateOptions = { apply: false, namespace: NAMESPACE, skipConflicts: false, output: 'table' };
const APPLY = { ...DRY, apply: true };

describe('a migration from whereabouts, on a kube-apiserver, with the shipped rights', function () {
  let cluster: PolicyCluster;
  let migrator: Client;
  let pods: Pod[] = [];
  const printed: string[] = [];

  async function migrate(options: MigrateOptions): Promise<boolean> {
    const print = (line: string) => void printed.push(line);
    return migrateWhereabouts(options, {
      client: migrator,
      clock: systemClock,
      concurrency: 8,
      clusterFlags: '',
      print,
      printStatus: print,
    });
  }

  async function allocate(allocations: Record<string, unknown>): Promise<void> {
    const patch = { type: 'merge', body: { spec: { range: RANGE, allocations } } } as const;
    await cluster.admin.patch(IP_POOLS, { namespace: NAMESPACE, name: '10.74.0.0-24' }, patch);
  }

  async function owners(): Promise<Record<string, string>> {
    const { items } = await cluster.admin.list(ADDRESS_LEASES);
    return Object.fromEntries(items.map(({ spec }) => [spec.address, spec.owner?.name ?? 'reserved']));
  }

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await createCrds(
      cluster.admin,
      await readManifests(join(import.meta.dirname, '..', '..', 'bed', 'manifests', 'whereabouts.yaml')),
    );
    await createAll(cluster.admin, [
      roleBindingOf('migrator', 'holdfast-migrate'),
      roleBindingOf('keeper', 'holdfast-pool-admin'),
    ]);
    migrator = await cluster.asRestricted('migrator');
    await until('the migrator has its rights', () =>
      migrator.list(PODS).then(
        () => true,
        () => false,
      ),
    );
    pods = await Promise.all([1, 2, 3].map(() => cluster.createPod('user', {})));
    const config = { name: 'blue', type: 'bridge', ipam: { type: 'whereabouts', range: RANGE } };
    await cluster.admin.create(NETWORK_ATTACHMENT_DEFINITIONS, {
      metadata: { namespace: 'default', name: 'blue' },
      spec: { config: JSON.stringify(config) },
    });
    await cluster.admin.create(IP_POOLS, { metadata: { namespace: NAMESPACE, name: '10.74.0.0-24' }, spec: {} });
    const podref = (index: number) => `default/${pods[index]?.metadata.name ?? ''}`;
    await allocate({
      5: { id: 'c1', podref: podref(0), ifname: 'net1' },
      6: { id: 'c2', podref: podref(1) },
      7: { id: 'c3', podref: 'default/gone' },
      eight: { podref: podref(2) },
    });
  });

  it('writes nothing when it plans', async () => {
    expect(await migrate(DRY)).to.equal(true);
    expect(await owners()).to.deep.equal({});
    expect((await cluster.admin.list(ADDRESS_POOLS)).items).to.deep.equal([]);
  });

  it('creates a pool and leases that the API server accepts', async () => {
    expect(await migrate(APPLY), printed.join('\n')).to.equal(true);
    const pool = await cluster.admin.get(ADDRESS_POOLS, { name: 'blue.default' });
    expect(pool.metadata.annotations).to.deep.equal({ [POOL_NAD_NAMESPACE]: 'default' });
    expect(pool.spec.subnets).to.deep.equal([{ cidr: RANGE }]);
    expect(await owners()).to.deep.equal({ '10.74.0.5': pods[0]?.metadata.name, '10.74.0.6': pods[1]?.metadata.name });
    const { spec } = await cluster.admin.get(ADDRESS_LEASES, { name: 'blue.10-74-0-5' });
    expect(spec).to.deep.include({ containerID: 'c1', interface: 'net1', pool: 'blue.default' });
  });

  it('allocates a released address to the pod to which whereabouts allocated it next', async () => {
    const lease = readLease(await cluster.admin.get(ADDRESS_LEASES, { name: 'blue.10-74-0-6' }));
    await writeLease(cluster.admin, releaseLease(lease, Date.now()));
    const [, second, third] = pods;
    await cluster.admin.delete(
      PODS,
      { namespace: 'default', name: second?.metadata.name ?? '' },
      { gracePeriodSeconds: 0 },
    );
    await allocate({ 6: { id: 'c4', podref: `default/${third?.metadata.name ?? ''}`, ifname: 'net1' } });
    expect(await migrate(APPLY), printed.join('\n')).to.equal(true);
    expect((await owners())['10.74.0.6']).to.equal(third?.metadata.name);
  });

  it('has no rights to change objects of whereabouts, NADs or pods', async () => {
    const ref = { namespace: NAMESPACE, name: '10.74.0.0-24' };
    const patch = { type: 'merge', body: { metadata: { labels: { mine: 'yes' } } } } as const;
    await expectDenial(migrator.delete(IP_POOLS, ref), 'cannot delete resource');
    await expectDenial(migrator.patch(IP_POOLS, ref, patch), 'cannot patch resource');
    const nad = { namespace: 'default', name: 'blue' };
    await expectDenial(migrator.patch(NETWORK_ATTACHMENT_DEFINITIONS, nad, patch), 'cannot patch resource');
    const pod = { namespace: 'default', name: pods[0]?.metadata.name ?? '' };
    const body = { metadata: { annotations: { [NETWORK_STATUS_ANNOTATION]: '[]' } } };
    await expectDenial(migrator.patch(PODS, pod, { type: 'merge', body }), 'cannot patch resource');
    await expectDenial(migrator.delete(ADDRESS_POOLS, { name: 'blue.default' }), 'cannot delete resource');
  });

  it('shows the owners of addresses that the user may see', async () => {
    const [first] = pods;
    const here = { allNamespaces: false };
    const { lines } = await listIps(here, await cluster.asRestricted('migrator'), 'default');
    expect(
      lines(false)
        .map(textOf)
        .find((line) => line.includes(first?.metadata.name ?? '-')),
    ).to.match(/10\.74\.0\.5 +blue\.default/);
    const nobody = await cluster.asRestricted('nobody');
    await expectDenial(
      listIps({ ...here, allNamespaces: true }, nobody, 'default'),
      'cannot list resource "ipamclaims"',
    );
  });

  it('allows an administrator of pools to reserve an address for a MAC address and to remove the reservation', async () => {
    const keeper = await cluster.asRestricted('keeper');
    const wanted = { pool: 'blue.default', address: '10.74.0.77', mac: '02:00:00:00:00:01' };
    expect(await reserve(wanted, keeper)).to.match(/reserved$/);
    expect((await owners())['10.74.0.77']).to.equal('reserved');
    expect(await reserve(wanted, keeper)).to.match(/unchanged$/);
    const second = await reserve({ ...wanted, address: '10.74.0.78' }, keeper).catch(messageOf);
    expect(second).to.include('already reserves 10.74.0.77 for 02:00:00:00:00:01');
    expect(await unreserve(wanted, keeper)).to.match(/is free$/);
    expect(await owners()).not.to.have.property('10.74.0.77');
  });
});
