import { expect } from 'chai';
import type { ObjectMeta, OwnerReference } from '../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_OWNER_UID, CLAIM_VM_NETWORK } from '../../api/names.js';
import { CONFIG_MAPS, IPAM_CLAIMS } from '../../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';

const WHO = {
  tenant: 'tenant',
  controller: 'system:serviceaccount:holdfast-system:holdfast-controller',
  webhook: 'system:serviceaccount:holdfast-system:holdfast-webhook',
  all: 'system:serviceaccount:holdfast-system:holdfast-all',
  namesake: 'system:serviceaccount:tenant:holdfast-all',
  kubevirt: 'system:serviceaccount:kubevirt:kubevirt-controller',
  collector: 'system:serviceaccount:kube-system:generic-garbage-collector',
  ipam: 'system:serviceaccount:ovn-kubernetes:ovnkube-cluster-manager',
  restorer: 'system:serviceaccount:backup:restorer',
} as const;
type Person = keyof typeof WHO;

const VMI: OwnerReference = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm1', uid: 'u-1' };
const VM: OwnerReference = { ...VMI, kind: 'VirtualMachine' };
const LAUNCHER = { 'kubevirt.io': 'virt-launcher' };

describe('the admission policies on a kube-apiserver', function () {
  let cluster: PolicyCluster;

  usePolicyCluster(
    this,
    async (started) => {
      cluster = started;
      const refused = [
        () => cluster.createPod(WHO.tenant, { labels: LAUNCHER, ownerReferences: [VMI] }),
        () => cluster.createPod(WHO.tenant, { ownerReferences: [VMI] }),
        () => cluster.createClaim(WHO.tenant, { finalizers: [CLAIM_FINALIZER] }),
      ];
      for (const attempt of refused) await untilDenied(attempt);
    },
    { kubevirtNamespace: 'kubevirt', claimWriters: `\n ${WHO.restorer}\n` },
  );

  describe('for claims', () => {
    const ours: Partial<ObjectMeta> = {
      annotations: { [CLAIM_OWNER_UID]: 'u-1', [CLAIM_VM_NETWORK]: 'data' },
      finalizers: [CLAIM_FINALIZER],
      ownerReferences: [VM],
    };

    const creations: { name: string; as: Person; given: Partial<ObjectMeta>; expect?: string }[] = [
      { name: 'Holdfast creates them with all fields', as: 'controller', given: ours },
      { name: 'users whom the ConfigMap names create them with all fields', as: 'restorer', given: ours },
      {
        name: 'a tenant creates a claim without protected fields',
        as: 'tenant',
        given: { annotations: { note: 'mine' }, finalizers: ['a.b/c'] },
      },
      {
        name: 'a tenant cannot create one with annotations of Holdfast',
        as: 'tenant',
        given: { annotations: { [CLAIM_OWNER_UID]: 'u-1' } },
        expect: 'only Holdfast writes the annotations',
      },
      {
        name: 'a tenant cannot create one with an owner',
        as: 'tenant',
        given: { ownerReferences: [VM] },
        expect: 'only Holdfast writes the owner',
      },
      {
        name: 'a tenant cannot create one with the finalizer of Holdfast',
        as: 'tenant',
        given: { finalizers: [CLAIM_FINALIZER] },
        expect: 'only Holdfast sets and removes the finalizer',
      },
      { name: 'the all-in-one process creates them with all fields', as: 'all', given: ours },
      {
        name: 'an account with the name of the all-in-one process in another namespace cannot',
        as: 'namesake',
        given: ours,
        expect: 'only Holdfast',
      },
      { name: 'the webhook cannot create one with such fields', as: 'webhook', given: ours, expect: 'only Holdfast' },
      {
        name: 'the garbage collector cannot create one with the finalizer of Holdfast',
        as: 'collector',
        given: ours,
        expect: 'only Holdfast',
      },
    ];
    for (const creation of creations) {
      it(creation.name, () => expectDenial(cluster.createClaim(WHO[creation.as], creation.given), creation.expect));
    }

    const annotate = (key: string, value: string | null) => ({ metadata: { annotations: { [key]: value } } });
    const changes: { name: string; as: Person; to: object; expect?: string }[] = [
      { name: 'a tenant writes other annotations', as: 'tenant', to: annotate('note', 'mine') },
      { name: 'a tenant removes other finalizers', as: 'tenant', to: { metadata: { finalizers: [CLAIM_FINALIZER] } } },
      {
        name: 'a tenant cannot add an annotation of Holdfast',
        as: 'tenant',
        to: annotate('ipam.holdfast.dev/requested-addresses', '[]'),
        expect: 'only Holdfast writes the annotations',
      },
      {
        name: 'a tenant cannot change an annotation of Holdfast',
        as: 'tenant',
        to: annotate(CLAIM_OWNER_UID, 'u-2'),
        expect: 'only Holdfast writes the annotations',
      },
      {
        name: 'a tenant cannot remove an annotation of Holdfast',
        as: 'tenant',
        to: annotate(CLAIM_OWNER_UID, null),
        expect: 'only Holdfast writes the annotations',
      },
      {
        name: 'a tenant cannot remove an owner',
        as: 'tenant',
        to: { metadata: { ownerReferences: [] } },
        expect: 'only Holdfast writes the owner',
      },
      {
        name: 'a tenant cannot change an owner',
        as: 'tenant',
        to: { metadata: { ownerReferences: [{ ...VM, blockOwnerDeletion: true }] } },
        expect: 'only Holdfast writes the owner',
      },
      {
        name: 'a tenant cannot remove the finalizer of Holdfast',
        as: 'tenant',
        to: { metadata: { finalizers: [] } },
        expect: 'only Holdfast sets and removes the finalizer',
      },
      {
        name: 'a tenant cannot change the network',
        as: 'tenant',
        to: { spec: { network: 'green' } },
        expect: 'only Holdfast changes the spec',
      },
      {
        name: 'a tenant cannot change the interface',
        as: 'tenant',
        to: { spec: { interface: 'pod37a8eec1ce1' } },
        expect: 'only Holdfast changes the spec',
      },
      { name: 'the garbage collector removes owners', as: 'collector', to: { metadata: { ownerReferences: [] } } },
      {
        name: 'the garbage collector cannot change an annotation of Holdfast',
        as: 'collector',
        to: annotate(CLAIM_OWNER_UID, 'u-2'),
        expect: 'only Holdfast writes the annotations',
      },
      {
        name: 'Holdfast removes its finalizer',
        as: 'controller',
        to: { metadata: { annotations: null, finalizers: null, ownerReferences: null }, spec: { network: 'green' } },
      },
    ];
    for (const change of changes) {
      it(change.name, async () => {
        const claim = await cluster.createClaim(WHO.controller, { ...ours, finalizers: [CLAIM_FINALIZER, 'a.b/c'] });
        await expectDenial(cluster.patchClaim(WHO[change.as], claim, change.to), change.expect);
      });
    }

    it('a user in the group system:masters may write all fields', async () => {
      const { metadata } = await cluster.createClaim(WHO.controller, ours);
      const body = { metadata: { finalizers: null, ownerReferences: null } };
      await expectDenial(cluster.admin.patch(IPAM_CLAIMS, metadata, { type: 'merge', body }), undefined);
    });

    const writeStatus = async (user: string): Promise<unknown> => {
      const claim = await cluster.createClaim(WHO.controller, ours);
      return cluster.patchClaim(user, claim, { status: { ips: ['10.0.0.1/24'] } }, 'status');
    };

    it('users whom RBAC allows write their status while statusWriters is empty', () =>
      expectDenial(writeStatus(WHO.tenant), undefined));

    it('only a user whom the ConfigMap names writes their status', async () => {
      const ref = { namespace: 'holdfast-system', name: 'holdfast-policies' };
      const body = { data: { statusWriters: `${WHO.ipam}\n` } };
      await cluster.admin.patch(CONFIG_MAPS, ref, { type: 'merge', body });
      const words = await untilDenied(() => writeStatus(WHO.tenant));
      expect(words).to.include(
        'tenant is not listed in statusWriters of the ConfigMap holdfast-system/holdfast-policies',
      );
      await expectDenial(writeStatus(WHO.controller), 'not listed in statusWriters');
      await expectDenial(writeStatus(WHO.ipam), undefined);
      const { metadata } = await cluster.createClaim(WHO.controller, ours);
      const patch = { type: 'merge', body: { status: { ips: [] } } } as const;
      await expectDenial(cluster.admin.patch(IPAM_CLAIMS, metadata, patch, { subresource: 'status' }), undefined);
    });

    it('a denial says what to do for software that must write claims', async () => {
      for (const given of [
        { annotations: { [CLAIM_OWNER_UID]: 'u-1' } },
        { ownerReferences: [VM] },
        { finalizers: [CLAIM_FINALIZER] },
      ]) {
        await expectDenial(cluster.createClaim(WHO.tenant, given), 'claimWriters of the ConfigMap holdfast-policies');
      }
      const claim = await cluster.createClaim(WHO.controller, ours);
      const attempt = cluster.patchClaim(WHO.tenant, claim, { spec: { network: 'green' } });
      await expectDenial(attempt, 'claimWriters of the ConfigMap holdfast-policies');
    });
  });

  describe('without their parameters', () => {
    before(async () => {
      await cluster.admin.delete(CONFIG_MAPS, { namespace: 'holdfast-system', name: 'holdfast-policies' });
      await untilDenied(() => cluster.createClaim(WHO.tenant, {}));
    });

    it('deny claims, and say why', async () => {
      expect(await untilDenied(() => cluster.createClaim(WHO.controller, {}))).to.include('no params found');
    });

    it('allow launchers, which get no address of a claim meanwhile', async () => {
      const launcher = { labels: LAUNCHER, ownerReferences: [VMI] };
      await expectDenial(cluster.createPod(WHO.kubevirt, launcher), undefined);
    });

    it('allow all other pods', async () => {
      await expectDenial(cluster.createPod(WHO.tenant, { labels: { app: 'web' } }), undefined);
    });

    it('deny a pod that a VMI owns and that lacks the label', async () => {
      // of either policy, whichever the API server names first
      await expectDenial(cluster.createPod(WHO.tenant, { ownerReferences: [VMI] }), 'holdfast-launcher-');
    });
  });
});
