import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { KUBEVIRT_API_VERSIONS } from '../../api/kubevirt.js';
import type { ObjectMeta, OwnerReference } from '../../api/meta.js';
import { NETWORKS_ANNOTATION, PRIMARY_CLAIM_ANNOTATION } from '../../api/names.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import { messageOf } from '../../kube/errors.js';
import { FORGED_OWNERS, type ForgedOwner } from '../../test/objects/forged-owners.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';
import { LAUNCHER_LABELS as LAUNCHER, VMI_OWNER as VMI } from '../../test/objects/launcher-pods.js';

const WHO = {
  tenant: 'tenant',
  controller: 'system:serviceaccount:holdfast-system:holdfast-controller',
  kubevirt: 'system:serviceaccount:kubevirt:kubevirt-controller',
  namesake: 'system:serviceaccount:default:kubevirt-controller',
  collector: 'system:serviceaccount:kube-system:generic-garbage-collector',
} as const;
type Person = keyof typeof WHO;

const PRIMARY_CLAIM = { [PRIMARY_CLAIM_ANNOTATION]: 'vm1.default' };
const OTHER_VMI: OwnerReference = { ...VMI, name: 'vm2', uid: 'u-2', controller: false };

describe('the admission policies for pods that a VMI owns, on a kube-apiserver', function () {
  let cluster: PolicyCluster;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await untilDenied(() => cluster.createPod(WHO.tenant, { labels: LAUNCHER, ownerReferences: [VMI] }));
    await untilDenied(() => cluster.createPod(WHO.tenant, { ownerReferences: [VMI] }));
    // of the policy launcher-label, which may become active after the others
    const malformed = [{ ...VMI, apiVersion: 'kubevirt.io' }];
    await untilDenied(() => cluster.createPod(WHO.kubevirt, { labels: LAUNCHER, ownerReferences: malformed }));
  });

  const creations: { name: string; as: Person; given: Partial<ObjectMeta>; expect?: string }[] = [
    { name: 'KubeVirt creates launchers', as: 'kubevirt', given: { labels: LAUNCHER, ownerReferences: [VMI] } },
    {
      name: 'a tenant cannot create a launcher',
      as: 'tenant',
      given: { labels: LAUNCHER, ownerReferences: [VMI] },
      // of either policy, whichever the API server names first
      expect: 'only KubeVirt (',
    },
    {
      name: 'a tenant cannot create a launcher without the label',
      as: 'tenant',
      given: { ownerReferences: [VMI] },
      // of either policy, whichever the API server names first
      expect: 'kubevirt-controller',
    },
    {
      name: 'a tenant cannot create a launcher with another version of the group',
      as: 'tenant',
      given: { labels: LAUNCHER, ownerReferences: [{ ...VMI, apiVersion: 'kubevirt.io/v1alpha3' }] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a tenant cannot create a launcher with another owner first',
      as: 'tenant',
      given: { labels: LAUNCHER, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'n' }, VMI] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a service account of the same name in another namespace cannot create a launcher with networks',
      as: 'namesake',
      given: { labels: LAUNCHER, ownerReferences: [VMI], annotations: { [NETWORKS_ANNOTATION]: 'blue' } },
      expect: 'only KubeVirt (system:serviceaccount:kubevirt:kubevirt-controller)',
    },
    {
      name: 'a service account of the same name in another namespace cannot create a launcher with a claim on its primary network',
      as: 'namesake',
      given: { labels: LAUNCHER, ownerReferences: [VMI], annotations: PRIMARY_CLAIM },
      expect: 'may refer to an IPAMClaim on their primary network',
    },
    {
      name: 'Holdfast cannot create a launcher',
      as: 'controller',
      given: { labels: LAUNCHER, ownerReferences: [VMI] },
      expect: 'only KubeVirt',
    },
    {
      name: 'nobody creates a launcher of several VMIs, because the kubelet could not write the status of one with 1,000 of them',
      as: 'kubevirt',
      given: { labels: LAUNCHER, ownerReferences: [VMI, OTHER_VMI] },
      expect: 'and only one',
    },
    { name: 'a tenant creates pods without an owner, with any label', as: 'tenant', given: { labels: LAUNCHER } },
    {
      name: 'a tenant creates a pod that is owned by a kind of the same name in another group',
      as: 'tenant',
      given: { ownerReferences: [{ ...VMI, apiVersion: 'example.com/v1' }] },
    },
  ];
  for (const creation of creations) {
    it(creation.name, () => expectDenial(cluster.createPod(WHO[creation.as], creation.given), creation.expect));
  }

  /** The expected message for each owner and user; absent if the request is allowed. */
  const refusals: Record<ForgedOwner['reading'], Partial<Record<'tenant' | 'kubevirt', string>>> = {
    vmi: { tenant: 'only KubeVirt' },
    // for a tenant, of any policy that the API server names first
    malformed: { tenant: 'VirtualMachineInstance', kubevirt: 'version of KubeVirt' },
    other: {},
    invalid: { tenant: 'metadata.ownerReferences', kubevirt: 'metadata.ownerReferences' },
  };
  for (const { name, owners, reading } of FORGED_OWNERS) {
    for (const person of ['tenant', 'kubevirt'] as const) {
      const words = refusals[reading][person];
      it(`${person} ${words === undefined ? 'creates' : 'does not create'} a pod with the label and ${name}`, async () => {
        const given = { labels: LAUNCHER, ownerReferences: [...owners] };
        expect(await wordsOf(cluster.createPod(WHO[person], given))).to.include(words ?? 'created');
      });
    }
  }

  it('compare the API group with the same expression as the code in every place', async () => {
    for (const name of ['claim-reference', 'launcher-creator', 'launcher-label', 'launcher-owner']) {
      const text = await readFile(join(MANIFESTS, 'base', 'claims', 'policies', `${name}.yaml`), 'utf8');
      const compared = [
        ...text.matchAll(/o\.kind == 'VirtualMachineInstance' &&\s+o\.apiVersion\.matches\(r'([^']+)'\)/g),
      ];
      const expressions = new Set(compared.map(([, expression]) => expression));
      expressions.delete('^kubevirt\\.io(/|$)');
      expect([...expressions], name).to.deep.equal([KUBEVIRT_API_VERSIONS]);
      expect(compared, name).to.have.length(text.split("o.kind == 'VirtualMachineInstance'").length - 1);
    }
  });

  it('allow to remove finalizers from a pod with an older malformed owner, but not to add another malformed owner', async () => {
    const old = { ...VMI, apiVersion: 'kubevirt.io' };
    const binding = 'holdfast-launcher-label';
    const pod = await cluster.withoutPolicy(binding, () => cluster.createPod(WHO.tenant, { ownerReferences: [old] }));
    await untilDenied(() => cluster.createPod(WHO.tenant, { ownerReferences: [old] }));
    const note = { metadata: { finalizers: ['example.com/mine'] } };
    await expectDenial(cluster.patchPod(WHO.tenant, pod, note), undefined);
    const more = { metadata: { ownerReferences: [old, { ...old, controller: false, uid: 'u-2' }] } };
    await expectDenial(cluster.patchPod(WHO.tenant, pod, more), 'version of KubeVirt');
  });

  const launcher = { labels: LAUNCHER, ownerReferences: [VMI], annotations: PRIMARY_CLAIM };
  interface Change {
    name: string;
    /** Default: a plain pod. */
    from?: Partial<ObjectMeta>;
    as: Person;
    to: object;
    /** Words of the refusal; none: allowed. */
    expect?: string;
  }
  const changes: Change[] = [
    { name: 'a tenant changes other fields of one', from: launcher, as: 'tenant', to: { annotations: { a: 'b' } } },
    {
      name: 'a tenant cannot give a launcher another claim on its primary network',
      from: launcher,
      as: 'tenant',
      to: { annotations: { [PRIMARY_CLAIM_ANNOTATION]: 'vm2.default' } },
      expect: 'may refer to an IPAMClaim on their primary network',
    },
    {
      name: 'a tenant cannot add a second VMI as owner of a launcher',
      from: launcher,
      as: 'tenant',
      to: { ownerReferences: [VMI, OTHER_VMI] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a tenant cannot rename an owner of a launcher',
      from: launcher,
      as: 'tenant',
      to: { ownerReferences: [{ ...VMI, name: 'vm2' }] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a tenant cannot turn an owner of another group into a VMI',
      from: { labels: LAUNCHER, ownerReferences: [{ ...VMI, apiVersion: 'example.com/v1' }] },
      as: 'tenant',
      to: { ownerReferences: [VMI] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a tenant cannot make the VMI that owns a launcher its controller',
      from: { labels: LAUNCHER, ownerReferences: [OTHER_VMI] },
      as: 'tenant',
      to: { ownerReferences: [{ ...OTHER_VMI, controller: true }] },
      expect: 'only KubeVirt',
    },
    // after --cascade=orphan by a tenant, the garbage collector tries it
    ...(['tenant', 'controller', 'collector'] as const).map((as) => ({
      name: `${WHO[as]} cannot remove the VMI from the owners of a launcher`,
      from: launcher,
      as,
      to: { ownerReferences: null },
      expect: 'may remove the VirtualMachineInstance',
    })),
    {
      name: 'a tenant cannot replace the VMI of a launcher by another one',
      from: launcher,
      as: 'collector',
      to: { ownerReferences: [OTHER_VMI] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a tenant cannot set controller to false for the VMI of a launcher',
      from: launcher,
      as: 'tenant',
      to: { ownerReferences: [{ ...VMI, controller: false }] },
      expect: 'VirtualMachineInstance',
    },
    {
      name: 'a tenant cannot change the group of the VMI of a launcher',
      from: launcher,
      as: 'tenant',
      to: { ownerReferences: [{ ...VMI, apiVersion: 'example.com/v1' }] },
      expect: 'may remove the VirtualMachineInstance',
    },
    {
      name: 'a tenant adds and removes owners of other kinds',
      from: { ...launcher, ownerReferences: [VMI, { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'c' }] },
      as: 'tenant',
      to: { ownerReferences: [{ apiVersion: 'v1', kind: 'Secret', name: 's', uid: 's' }, VMI] },
    },
    { name: 'KubeVirt removes the owner', from: launcher, as: 'kubevirt', to: { ownerReferences: [] } },
    {
      name: 'the garbage collector clears blockOwnerDeletion',
      from: { labels: LAUNCHER, ownerReferences: [{ ...VMI, blockOwnerDeletion: true }] },
      as: 'collector',
      to: { ownerReferences: [{ ...VMI, blockOwnerDeletion: false }] },
    },
    {
      name: 'a tenant cannot remove the label of a launcher',
      from: launcher,
      as: 'tenant',
      to: { labels: { 'kubevirt.io': null } },
      expect: 'keep the label',
    },
    {
      name: 'a tenant cannot remove the label of a launcher together with the owner',
      from: launcher,
      as: 'tenant',
      to: { labels: { 'kubevirt.io': null }, ownerReferences: [] },
      // of either policy, whichever the API server names first
      expect: 'VirtualMachineInstance',
    },
    {
      name: 'a tenant cannot change the label of a launcher',
      from: launcher,
      as: 'tenant',
      to: { labels: { 'kubevirt.io': 'web' } },
      expect: 'keep the label',
    },
    {
      name: 'a tenant cannot add the label to an ordinary pod',
      as: 'tenant',
      to: { labels: LAUNCHER },
      expect: 'an existing pod may get the label',
    },
    {
      name: 'a tenant removes the label from a pod that no VMI owns',
      from: { labels: LAUNCHER },
      as: 'tenant',
      to: { labels: { 'kubevirt.io': null } },
    },
    {
      name: 'a tenant sets other values of the label',
      from: { labels: { 'kubevirt.io': 'hotplug-disk' } },
      as: 'tenant',
      to: { labels: { 'kubevirt.io': 'web' } },
    },
    { name: 'KubeVirt cannot make an ordinary pod a launcher', as: 'kubevirt', to: launcher, expect: 'only KubeVirt' },
    {
      name: 'a tenant cannot add a VMI as owner of an ordinary pod',
      as: 'tenant',
      to: { ownerReferences: [VMI] },
      expect: 'VirtualMachineInstance',
    },
    {
      name: 'a tenant cannot add a VMI and the label to an ordinary pod in one write',
      as: 'tenant',
      to: { labels: LAUNCHER, ownerReferences: [VMI] },
      expect: 'only KubeVirt',
    },
  ];
  for (const change of changes) {
    it(change.name, async () => {
      const pod = await cluster.createPod(WHO.kubevirt, change.from ?? {});
      await expectDenial(cluster.patchPod(WHO[change.as], pod, { metadata: change.to }), change.expect);
    });
  }
});

/** Why the API server refuses, whether it is a policy or the server itself. */
async function wordsOf(attempt: Promise<unknown>): Promise<string> {
  return attempt.then(
    () => 'created',
    (error: unknown) => messageOf(error),
  );
}
