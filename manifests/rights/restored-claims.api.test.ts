import type { ObjectMeta, OwnerReference } from '../../api/meta.js';
import {
  CLAIM_FINALIZER,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  CLAIM_RESTORED,
  LAST_APPLIED_ANNOTATION,
  VELERO_RESTORE_NAME,
} from '../../api/names.js';
import { createAll } from '../../bed/control-plane/objects.js';
import { until } from '../../bed/processes/wait.js';
import { isForbidden, messageOf } from '../../kube/errors.js';
import { ADDRESS_POOLS, IPAM_CLAIMS } from '../../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';
import { namespacedRoleBindingOf, roleBindingOf } from '../testing/role-binding.js';

const NAMESPACE = 'default';
const VM: OwnerReference = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  name: 'vm1',
  uid: 'u-1',
  controller: true,
};
const OWNER = { [CLAIM_OWNER_NAME]: 'vm1', [CLAIM_OWNER_UID]: 'u-1' };
/** As Velero creates a claim, and as kubectl does. */
const RESTORED: Partial<ObjectMeta> = {
  annotations: { ...OWNER, [CLAIM_RESTORED]: 'true' },
  finalizers: [CLAIM_FINALIZER],
  labels: { [VELERO_RESTORE_NAME]: 'nightly-1' },
};
const COPY = JSON.stringify({ metadata: { uid: 'saved-uid', annotations: OWNER } });
const APPLIED: Partial<ObjectMeta> = {
  annotations: { ...OWNER, [LAST_APPLIED_ANNOTATION]: COPY },
  finalizers: [CLAIM_FINALIZER],
  ownerReferences: [VM],
};
/** What lets a claim wait for a VM, each without the owner that Holdfast writes. */
const RECORDS: readonly Partial<ObjectMeta>[] = [
  { labels: { [VELERO_RESTORE_NAME]: 'nightly-1' } },
  { annotations: { [LAST_APPLIED_ANNOTATION]: COPY } },
  { annotations: { [LAST_APPLIED_ANNOTATION]: COPY.replace('owner-uid', 'owner\\u002Duid') } },
  { annotations: { [CLAIM_RESTORED]: 'true' } },
];
const REFUSAL = 'To restore claims, bind the user to the ClusterRole holdfast-restore';
const STATUS = { status: { ips: ['10.0.0.5/24'] } };

/** The rights that tools for backups have anyway. */
const CLAIM_WRITER = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'claim-writer' },
  rules: [
    {
      apiGroups: ['k8s.cni.cncf.io'],
      resources: ['ipamclaims', 'ipamclaims/status'],
      verbs: ['create', 'get', 'patch'],
    },
  ],
};

describe('the rights to restore claims, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  let count = 0;

  async function restore(user: string, metadata: Partial<ObjectMeta>) {
    const client = await cluster.asRestricted(user);
    const name = `claim-${++count}`;
    return client.create(IPAM_CLAIMS, {
      metadata: { ...metadata, name, namespace: NAMESPACE },
      spec: { network: 'blue', interface: 'net1' },
    });
  }

  async function patch(user: string, name: string, body: object, subresource?: string) {
    const client = await cluster.asRestricted(user);
    const options = subresource === undefined ? {} : { subresource };
    return client.patch(IPAM_CLAIMS, { namespace: NAMESPACE, name }, { type: 'merge', body }, options);
  }

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await createAll(cluster.admin, [
      CLAIM_WRITER,
      roleBindingOf('velero', 'cluster-admin'),
      roleBindingOf('tool', 'holdfast-restore'),
      { ...roleBindingOf('tool', 'claim-writer'), metadata: { name: 'tool-claims' } },
      roleBindingOf('plain-tool', 'claim-writer'),
      namespacedRoleBindingOf('tenant', 'admin', NAMESPACE),
      namespacedRoleBindingOf('tenant', 'claim-writer', NAMESPACE),
      namespacedRoleBindingOf('tenant', 'holdfast-restore', NAMESPACE),
      namespacedRoleBindingOf('namespace-owner', 'cluster-admin', NAMESPACE),
    ]);
    await cluster.admin.create(ADDRESS_POOLS, {
      metadata: { name: 'blue' },
      spec: { network: 'blue', subnets: [{ cidr: '10.0.0.0/24' }] },
    });
    await cluster.listNetworks();
    for (const user of ['velero', 'tool', 'plain-tool', 'tenant', 'namespace-owner']) {
      await until(`${user} has its rights`, () =>
        restore(user, {}).then(
          () => true,
          (error: unknown) => {
            if (isForbidden(error) && messageOf(error).includes('cannot create')) return false;
            throw error;
          },
        ),
      );
    }
    await untilDenied(() => restore('plain-tool', RESTORED));
    await untilDenied(async () =>
      patch('plain-tool', (await restore('plain-tool', {})).metadata.name, STATUS, 'status'),
    );
  });

  for (const [user, rights] of [
    ['velero', 'a tool that is bound to cluster-admin, such as Velero,'],
    ['tool', 'a tool that is bound to holdfast-restore'],
  ] as const) {
    it(`${rights} restores claims with owner, finalizer and addresses`, async () => {
      await expectDenial(restore(user, APPLIED), undefined);
      const { name } = (await restore(user, RESTORED)).metadata;
      await expectDenial(patch(user, name, STATUS, 'status'), undefined);
    });

    it(`${rights} cannot change the owner of a claim afterwards`, async () => {
      const { name } = (await restore(user, RESTORED)).metadata;
      const annotations = { [CLAIM_OWNER_UID]: 'u-2' };
      await expectDenial(patch(user, name, { metadata: { annotations } }), 'only Holdfast writes the annotations');
      await expectDenial(patch(user, name, { metadata: { ownerReferences: [VM] } }), 'only Holdfast writes the owner');
    });
  }

  for (const [user, rights] of [
    ['plain-tool', 'a tool that may only create claims'],
    ['tenant', 'a tenant with the roles admin and holdfast-restore in the namespace'],
    ['namespace-owner', 'a tenant with the role cluster-admin in the namespace'],
  ] as const) {
    it(`${rights} cannot create a claim that looks restored, and is told the role for it`, async () => {
      const others = [{ annotations: OWNER }, { ownerReferences: [VM] }, { finalizers: [CLAIM_FINALIZER] }];
      const [label, ...records] = RECORDS;
      for (const metadata of [...others, ...others.map((other) => ({ ...label, ...other })), ...records]) {
        await expectDenial(restore(user, metadata), REFUSAL);
      }
    });

    it(`${rights} creates a claim without an owner as Velero does, with its label`, async () => {
      await expectDenial(restore(user, { labels: { [VELERO_RESTORE_NAME]: 'nightly-1' } }), undefined);
    });

    it(`${rights} cannot change whether a claim looks restored`, async () => {
      const { name } = (await restore('velero', {})).metadata;
      for (const metadata of RECORDS) await expectDenial(patch(user, name, { metadata }), REFUSAL);
      const restored = (await restore('velero', RESTORED)).metadata.name;
      const labels = { [VELERO_RESTORE_NAME]: null };
      await expectDenial(patch(user, restored, { metadata: { labels } }), REFUSAL);
    });

    it(`${rights} applies and changes claims that were no VM's`, async () => {
      const annotations = { [LAST_APPLIED_ANNOTATION]: '{"metadata":{"annotations":{"note":"\\u003c"}}}' };
      const { name } = (await restore(user, { annotations })).metadata;
      await expectDenial(patch(user, name, { metadata: { labels: { app: 'web' } } }), undefined);
      const applied = (await restore('velero', APPLIED)).metadata.name;
      await expectDenial(patch(user, applied, { metadata: { labels: { app: 'web' } } }), undefined);
    });

    it(`${rights} can neither take over a restored claim nor write its addresses`, async () => {
      const { name } = (await restore('velero', RESTORED)).metadata;
      const annotations = { [CLAIM_OWNER_NAME]: 'vm2' };
      await expectDenial(patch(user, name, { metadata: { annotations } }), 'only Holdfast writes the annotations');
      await expectDenial(patch(user, name, { metadata: { ownerReferences: [VM] } }), 'only Holdfast writes the owner');
      await expectDenial(patch(user, name, STATUS, 'status'), 'only Holdfast writes the status');
    });
  }
});
