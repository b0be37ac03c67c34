import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { ObjectMeta } from '../../api/meta.js';
import { POOL_NAD_NAMESPACE } from '../../api/names.js';
import { createAll } from '../../bed/control-plane/objects.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES, ADDRESS_POOLS } from '../../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';
import { roleBindingOf } from '../testing/role-binding.js';

const WHO = {
  tenant: 'tenant',
  admin: 'network-admin',
  migrator: 'migrator',
  controller: 'system:serviceaccount:holdfast-system:holdfast-controller',
  ipam: 'system:serviceaccount:holdfast-system:holdfast-ipam',
} as const;
const RBAC = 'rbac.authorization.k8s.io';

/** The most that a tenant has: the role admin in a namespace. */
const TENANT_RIGHTS = {
  apiVersion: `${RBAC}/v1`,
  kind: 'RoleBinding',
  metadata: { name: 'tenants', namespace: 'default' },
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'admin' },
  subjects: [{ apiGroup: RBAC, kind: 'User', name: WHO.tenant }],
};

/** As an administrator of the cluster binds the roles that are for people. */
const PEOPLES_RIGHTS = [
  roleBindingOf(WHO.admin, 'holdfast-pool-admin'),
  roleBindingOf(WHO.migrator, 'holdfast-migrate'),
];

function pool(name: string, metadata: Partial<ObjectMeta> = {}): AddressPool {
  return { metadata: { ...metadata, name }, spec: { network: name, subnets: [{ cidr: '10.0.0.0/24' }] } };
}

describe('the rights to pools and leases, on a kube-apiserver', function () {
  let cluster: PolicyCluster;

  const as = (person: keyof typeof WHO): Promise<Client> => cluster.asRestricted(WHO[person]);

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await createAll(cluster.admin, [TENANT_RIGHTS, ...PEOPLES_RIGHTS]);
    await cluster.admin.create(ADDRESS_POOLS, pool('blue'));
    const mark = { [POOL_NAD_NAMESPACE]: 'nads' };
    await (await as('ipam')).create(ADDRESS_POOLS, pool('red.nads', { annotations: mark, labels: mark }));
  });

  describe('for leases', () => {
    const lease: AddressLease = {
      metadata: { name: 'blue.10-0-0-9' },
      spec: { address: '10.0.0.9', addressSpace: 'blue', pool: 'blue' },
    };
    const body = { metadata: { labels: { mine: 'yes' } } };

    it('a tenant cannot create, change, delete or read leases', async () => {
      const tenant = await as('tenant');
      const ref = lease.metadata;
      await expectDenial(tenant.create(ADDRESS_LEASES, lease), 'cannot create resource "addressleases"');
      await expectDenial(tenant.patch(ADDRESS_LEASES, ref, { type: 'merge', body }), 'cannot patch resource');
      await expectDenial(tenant.delete(ADDRESS_LEASES, ref), 'cannot delete resource');
      await expectDenial(tenant.list(ADDRESS_LEASES), 'cannot list resource');
    });

    it('the controller of Holdfast cannot write leases', async () => {
      await expectDenial((await as('controller')).create(ADDRESS_LEASES, lease), 'cannot create resource');
    });

    it('the IPAM of Holdfast creates, changes and deletes leases', async () => {
      const ipam = await as('ipam');
      await ipam.create(ADDRESS_LEASES, lease);
      await ipam.patch(ADDRESS_LEASES, lease.metadata, { type: 'merge', body });
      await ipam.delete(ADDRESS_LEASES, lease.metadata);
    });

    it('an administrator releases a lease, but cannot give a held one to another owner', async () => {
      const owner = { kind: 'IPAMClaim', namespace: 'a', name: 'gone', uid: 'gone-uid' } as const;
      const ref = { name: 'blue.10-0-0-10' };
      const spec = { ...lease.spec, address: '10.0.0.10', owner };
      await (await as('ipam')).create(ADDRESS_LEASES, { metadata: ref, spec });
      const admin = await as('admin');
      const write = (change: object) => admin.patch(ADDRESS_LEASES, ref, { type: 'merge', body: { spec: change } });
      const refused: unknown = await write({ owner: { ...owner, uid: 'other' } }).catch((error: unknown) => error);
      expect(String(refused)).to.include('which has not released it: set releasedAt first');
      await expectDenial(write({ releasedAt: '2026-01-01T00:00:00Z' }), undefined);
    });
  });

  describe('for pools', () => {
    const mark = { [POOL_NAD_NAMESPACE]: 'nads' };
    const REFUSAL = 'only Holdfast derives pools';
    const asAdmin = (): Promise<Client> => as('admin');
    const tryToCreate = async (metadata: Partial<ObjectMeta>, person: keyof typeof WHO = 'admin') =>
      (await as(person)).create(ADDRESS_POOLS, pool('trial', metadata), { dryRun: true });

    before(() => untilDenied(() => tryToCreate({ annotations: mark })));

    it('an administrator creates a pool', () => expectDenial(tryToCreate({ labels: { mine: 'yes' } }), undefined));

    for (const [field, metadata] of [
      ['annotation', { annotations: mark }],
      ['label', { labels: mark }],
      ['empty annotation', { annotations: { [POOL_NAD_NAMESPACE]: '' } }],
    ] as const) {
      it(`an administrator cannot create a pool with the ${field} of a derived pool`, () =>
        expectDenial(tryToCreate(metadata), REFUSAL));
    }

    it('a user who migrates networks creates derived pools before their NADs, and changes no pool', async () => {
      const derived = { annotations: mark, labels: mark };
      await expectDenial(tryToCreate(derived, 'migrator'), undefined);
      const patch = { type: 'merge', body: { metadata: derived } } as const;
      const migrator = await as('migrator');
      await expectDenial(migrator.patch(ADDRESS_POOLS, { name: 'blue' }, patch), 'cannot patch resource');
    });

    const changes: { name: string; of: string; to: object; expect?: string }[] = [
      { name: 'cannot turn a pool into a derived pool', of: 'blue', to: { annotations: mark }, expect: REFUSAL },
      { name: 'cannot add the label of derived pools', of: 'blue', to: { labels: mark }, expect: REFUSAL },
      { name: 'cannot unset annotations of derived pools', of: 'red.nads', to: { annotations: null }, expect: REFUSAL },
      { name: 'cannot remove the label of a derived pool', of: 'red.nads', to: { labels: null }, expect: REFUSAL },
      { name: 'adds other labels to a derived pool', of: 'red.nads', to: { labels: { mine: 'yes' } } },
    ];
    for (const change of changes) {
      it(`an administrator ${change.name}`, async () => {
        const patch = { type: 'merge', body: { metadata: change.to } } as const;
        const admin = await asAdmin();
        await expectDenial(admin.patch(ADDRESS_POOLS, { name: change.of }, patch, { dryRun: true }), change.expect);
      });
    }

    it('not even Holdfast adds spec.guest to a derived pool', async () => {
      const patch = { type: 'merge', body: { spec: { guest: {} } } } as const;
      for (const person of ['admin', 'ipam'] as const) {
        const change = (name: string) =>
          as(person).then((user) => user.patch(ADDRESS_POOLS, { name }, patch, { dryRun: true }));
        await expectDenial(change('red.nads'), 'cannot have spec.guest');
        await expectDenial(change('blue'), undefined);
      }
    });

    it('not even Holdfast marks a pool by the annotation or the label alone', async () => {
      for (const metadata of [{ annotations: mark }, { labels: mark }])
        await expectDenial(tryToCreate(metadata, 'ipam'), 'has both the annotation and the label');
      const patch = { type: 'merge', body: { metadata: { labels: mark } } } as const;
      const ipam = await as('ipam');
      const change = ipam.patch(ADDRESS_POOLS, { name: 'blue' }, patch, { dryRun: true });
      await expectDenial(change, 'has both the annotation and the label');
      await expectDenial(tryToCreate({ annotations: mark, labels: mark }, 'ipam'), undefined);
    });

    it('a tenant cannot read pools', async () => {
      await expectDenial((await as('tenant')).list(ADDRESS_POOLS), 'cannot list resource "addresspools"');
    });
  });
});
