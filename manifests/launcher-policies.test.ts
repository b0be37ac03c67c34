import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { KUBEVIRT_API_VERSIONS } from '../api/kubevirt.js';
import type { ObjectMeta, OwnerReference } from '../api/meta.js';
import { NETWORKS_ANNOTATION } from '../api/names.js';
import { MANIFESTS } from '../e2e/holdfast/manifests.js';
import { messageOf } from '../kube/errors.js';
import { FORGED_OWNERS, type ForgedOwner } from '../test/forged-owners.js';
import { PolicyCluster, expectDenial, untilDenied } from './testing/policy-cluster.js';
import { LAUNCHER_LABELS as LAUNCHER, VMI_OWNER as VMI } from '../test/launcher-pods.js';

const WHO = {
  tenant: 'tenant',
  controller: 'system:serviceaccount:holdfast-system:holdfast-controller',
  kubevirt: 'system:serviceaccount:kubevirt:kubevirt-controller',
  namesake: 'system:serviceaccount:default:kubevirt-controller',
  collector: 'system:serviceaccount:kube-system:generic-garbage-collector',
} as const;
type Person = keyof typeof WHO;

const OTHER_VMI: OwnerReference = { ...VMI, name: 'vm2', uid: 'u-2', controller: false };

describe('the admission policies for pods that a VMI owns, on a kube-apiserver', function () {
  this.timeout(20_000);
  let cluster: PolicyCluster;

  before(async function () {
    this.timeout(15 * 60_000); // the first run builds the API server
    cluster = await PolicyCluster.start({ kubevirtNamespace: 'kubevirt' });
    await untilDenied(() => cluster.createPod(WHO.tenant, { labels: LAUNCHER, ownerReferences: [VMI] }));
    await untilDenied(() => cluster.createPod(WHO.tenant, { ownerReferences: [VMI] }));
  });

  after(() => cluster.stop());

  const creations: { name: string; as: Person; given: Partial<ObjectMeta>; expect?: string }[] = [
    { name: 'KubeVirt makes launchers', as: 'kubevirt', given: { labels: LAUNCHER, ownerReferences: [VMI] } },
    {
      name: 'a tenant makes none',
      as: 'tenant',
      given: { labels: LAUNCHER, ownerReferences: [VMI] },
      // of either policy, whichever the API server names first
      expect: 'only KubeVirt (',
    },
    {
      name: 'nor one without the label',
      as: 'tenant',
      given: { ownerReferences: [VMI] },
      // of either policy, whichever the API server names first
      expect: 'kubevirt-controller',
    },
    {
      name: 'nor one of another version of the group',
      as: 'tenant',
      given: { labels: LAUNCHER, ownerReferences: [{ ...VMI, apiVersion: 'kubevirt.io/v1alpha3' }] },
      expect: 'only KubeVirt',
    },
    {
      name: 'nor one with another owner before it',
      as: 'tenant',
      given: { labels: LAUNCHER, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'n' }, VMI] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a service account of the right name in another namespace makes none with networks',
      as: 'namesake',
      given: { labels: LAUNCHER, ownerReferences: [VMI], annotations: { [NETWORKS_ANNOTATION]: 'blue' } },
      expect: 'only KubeVirt (system:serviceaccount:kubevirt:kubevirt-controller)',
    },
    {
      name: 'Holdfast itself makes none',
      as: 'controller',
      given: { labels: LAUNCHER, ownerReferences: [VMI] },
      expect: 'only KubeVirt',
    },
    { name: 'a tenant makes pods that nobody owns, whatever their label', as: 'tenant', given: { labels: LAUNCHER } },
    {
      name: 'a kind of the same name in another group is nobody',
      as: 'tenant',
      given: { ownerReferences: [{ ...VMI, apiVersion: 'example.com/v1' }] },
    },
  ];
  for (const creation of creations) {
    it(creation.name, () => expectDenial(cluster.createPod(WHO[creation.as], creation.given), creation.expect));
  }

  /** Who is refused what, in words of the refusal. */
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

  it('compare the API group by the same expression as the code, wherever they name a VirtualMachineInstance', async () => {
    for (const name of ['claim-reference', 'launcher-creator', 'launcher-label', 'launcher-owner']) {
      const text = await readFile(join(MANIFESTS, 'policies', `${name}.yaml`), 'utf8');
      const compared = [
        ...text.matchAll(/o\.kind == 'VirtualMachineInstance' &&\s+o\.apiVersion\.matches\(r'([^']+)'\)/g),
      ];
      const expressions = new Set(compared.map(([, expression]) => expression));
      expressions.delete('^kubevirt\\.io(/|$)');
      expect([...expressions], name).to.deep.equal([KUBEVIRT_API_VERSIONS]);
      expect(compared, name).to.have.length(text.split("o.kind == 'VirtualMachineInstance'").length - 1);
    }
  });

  it('let a pod with a malformed owner from before them lose its finalizers, and gain no other malformed owner', async () => {
    const old = { ...VMI, apiVersion: 'kubevirt.io' };
    const binding = 'holdfast-launcher-label';
    const pod = await cluster.withoutPolicy(binding, () => cluster.createPod(WHO.tenant, { ownerReferences: [old] }));
    await untilDenied(() => cluster.createPod(WHO.tenant, { ownerReferences: [old] }));
    const note = { metadata: { finalizers: ['example.com/mine'] } };
    await expectDenial(cluster.patchPod(WHO.tenant, pod, note), undefined);
    const more = { metadata: { ownerReferences: [old, { ...old, controller: false, uid: 'u-2' }] } };
    await expectDenial(cluster.patchPod(WHO.tenant, pod, more), 'version of KubeVirt');
  });

  const launcher = { labels: LAUNCHER, ownerReferences: [VMI] };
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
    {
      name: 'anybody changes other fields of a launcher',
      from: launcher,
      as: 'tenant',
      to: { annotations: { a: 'b' } },
    },
    { name: 'the collector takes the owner away', from: launcher, as: 'collector', to: { ownerReferences: [] } },
    {
      name: 'a tenant adds no second VMI to a launcher',
      from: launcher,
      as: 'tenant',
      to: { ownerReferences: [VMI, OTHER_VMI] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a tenant does not rename an owner of a launcher',
      from: launcher,
      as: 'tenant',
      to: { ownerReferences: [{ ...VMI, name: 'vm2' }] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a tenant makes no VMI of an owner of another group',
      from: { labels: LAUNCHER, ownerReferences: [{ ...VMI, apiVersion: 'example.com/v1' }] },
      as: 'tenant',
      to: { ownerReferences: [VMI] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a tenant does not make a VMI that owns a launcher its controller',
      from: { labels: LAUNCHER, ownerReferences: [OTHER_VMI] },
      as: 'tenant',
      to: { ownerReferences: [{ ...OTHER_VMI, controller: true }] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a tenant takes no VMI from its launcher',
      from: launcher,
      as: 'tenant',
      to: { ownerReferences: [] },
      expect: 'a launcher stays its VirtualMachineInstance',
    },
    {
      name: 'nor Holdfast',
      from: launcher,
      as: 'controller',
      to: { ownerReferences: null },
      expect: 'a launcher stays its VirtualMachineInstance',
    },
    {
      name: 'nor is a VMI put in the place of another',
      from: launcher,
      as: 'collector',
      to: { ownerReferences: [OTHER_VMI] },
      expect: 'only KubeVirt',
    },
    {
      name: 'a tenant does not say that it is not its controller',
      from: launcher,
      as: 'tenant',
      to: { ownerReferences: [{ ...VMI, controller: false }] },
      expect: 'VirtualMachineInstance',
    },
    {
      name: 'nor that it is of another group',
      from: launcher,
      as: 'tenant',
      to: { ownerReferences: [{ ...VMI, apiVersion: 'example.com/v1' }] },
      expect: 'a launcher stays its VirtualMachineInstance',
    },
    {
      name: 'a tenant adds owners of other kinds, and takes them away',
      from: { ...launcher, ownerReferences: [VMI, { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'c' }] },
      as: 'tenant',
      to: { ownerReferences: [{ apiVersion: 'v1', kind: 'Secret', name: 's', uid: 's' }, VMI] },
    },
    { name: 'KubeVirt takes the owner away', from: launcher, as: 'kubevirt', to: { ownerReferences: [] } },
    {
      name: 'the collector no longer blocks the deletion of an owner',
      from: { labels: LAUNCHER, ownerReferences: [{ ...VMI, blockOwnerDeletion: true }] },
      as: 'collector',
      to: { ownerReferences: [{ ...VMI, blockOwnerDeletion: false }] },
    },
    {
      name: 'a tenant does not take the label of a launcher away',
      from: launcher,
      as: 'tenant',
      to: { labels: { 'kubevirt.io': null } },
      expect: 'leave the label in place',
    },
    {
      name: 'nor together with the owner',
      from: launcher,
      as: 'tenant',
      to: { labels: { 'kubevirt.io': null }, ownerReferences: [] },
      // of either policy, whichever the API server names first
      expect: 'VirtualMachineInstance',
    },
    {
      name: 'a tenant does not change it',
      from: launcher,
      as: 'tenant',
      to: { labels: { 'kubevirt.io': 'web' } },
      expect: 'leave the label in place',
    },
    {
      name: 'a tenant gives the label to no plain pod',
      as: 'tenant',
      to: { labels: LAUNCHER },
      expect: 'a pod that is there gets the label',
    },
    {
      name: 'a tenant takes it from a pod that no VMI owns',
      from: { labels: LAUNCHER },
      as: 'tenant',
      to: { labels: { 'kubevirt.io': null } },
    },
    {
      name: 'other values of the label are nobody’s business here',
      from: { labels: { 'kubevirt.io': 'hotplug-disk' } },
      as: 'tenant',
      to: { labels: { 'kubevirt.io': 'web' } },
    },
    { name: 'KubeVirt makes no launcher of a plain pod', as: 'kubevirt', to: launcher, expect: 'only KubeVirt' },
    {
      name: 'a tenant adds no VMI to a plain pod',
      as: 'tenant',
      to: { ownerReferences: [VMI] },
      // of either policy, whichever the API server names first
      expect: 'VirtualMachineInstance',
    },
    {
      name: 'nor with the label in the same write',
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
