import { expect } from 'chai';
import type { Client } from '../../kube/client.js';
import { NAMESPACES, SECRETS, type Secret } from '../../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';

const GUEST = { namespace: 'holdfast-system', name: 'holdfast-guest' };
const TYPE = 'ipam.holdfast.dev/network-data';
const LABEL = 'ipam.holdfast.dev/workload-uid';
const VMS = 'tenant';
const OWNER = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm1', uid: 'vm-uid' };

const OF_TYPE = 'may only write Secrets of the type ipam.holdfast.dev/network-data';
const OF_VM = 'may only write the Secret of the VM whose UID is its label';
const ONE_OWNER = 'has one owner, the VM whose UID is its label';
const ONE_KEY = 'may only write the key networkdata of a Secret';
const IN_NAMESPACES = 'may only create and patch Secrets in the namespaces of VMs';

function secret(name: string, more: Partial<Omit<Secret, 'metadata'>> & { metadata?: object } = {}): Secret {
  const { metadata = {}, ...rest } = more;
  const own = { name, namespace: VMS, labels: { [LABEL]: 'vm-uid' }, ownerReferences: [OWNER] };
  return { type: TYPE, data: { networkdata: 'e30=' }, ...rest, metadata: { ...own, ...metadata } };
}

describe('the admission policy for network data, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  /** A client with the shipped rights. */
  let guest: Client;
  /** The same user with all rights by RBAC. */
  let mighty: Client;
  let all: Client;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await cluster.admin.create(NAMESPACES, { metadata: { name: VMS } });
    guest = await cluster.withToken(GUEST);
    mighty = await cluster.as('system:serviceaccount:holdfast-system:holdfast-guest');
    all = await cluster.as('system:serviceaccount:holdfast-system:holdfast-all');
    await untilDenied(() => guest.create(SECRETS, secret('probe', { type: 'Opaque' }), { dryRun: true }));
    await cluster.admin.create(SECRETS, secret('password', { type: 'Opaque', data: { password: 'c2VjcmV0' } }));
    await cluster.admin.create(SECRETS, secret('of-another', { metadata: { labels: { [LABEL]: 'another' } } }));
  });

  const patch = (client: Client, name: string, body: object, namespace = VMS) =>
    client.patch(SECRETS, { namespace, name }, { type: 'merge', body });

  it('allows the Secret of a VM to be created, and its text to be replaced', async () => {
    await guest.create(SECRETS, secret('own'));
    const body = { metadata: { labels: { [LABEL]: 'vm-uid' } }, data: { networkdata: 'W10=' } };
    expect(await patch(guest, 'own', body)).to.have.nested.property('data.networkdata', 'W10=');
    const standalone = { ...OWNER, kind: 'VirtualMachineInstance' };
    await guest.create(SECRETS, secret('of-vmi', { metadata: { ownerReferences: [standalone] } }));
  });

  it('lets nobody read Secrets by patches that change nothing, not even in a dry run', async () => {
    await expectDenial(patch(guest, 'password', {}), OF_TYPE);
    const dry = guest.patch(
      SECRETS,
      { namespace: VMS, name: 'password' },
      { type: 'merge', body: {} },
      { dryRun: true },
    );
    await expectDenial(dry, OF_TYPE);
    await expectDenial(patch(all, 'password', {}), OF_TYPE);
    await expectDenial(guest.get(SECRETS, { namespace: VMS, name: 'own' }), 'cannot get resource "secrets"');
    await expectDenial(guest.list(SECRETS, { namespace: VMS }), 'cannot list resource "secrets"');
  });

  const denied: { name: string; given: Parameters<typeof secret>[1]; expect: string }[] = [
    { name: 'of another type', given: { type: 'Opaque' }, expect: OF_TYPE },
    {
      name: 'with the token of a service account',
      given: {
        type: 'kubernetes.io/service-account-token',
        metadata: { annotations: { 'kubernetes.io/service-account.name': 'default' } },
      },
      expect: OF_TYPE,
    },
    { name: 'without the UID of a VM', given: { metadata: { labels: {} } }, expect: OF_VM },
    { name: 'without an owner', given: { metadata: { ownerReferences: [] } }, expect: ONE_OWNER },
    {
      name: 'of another owner than its label says',
      given: { metadata: { ownerReferences: [{ ...OWNER, uid: 'another' }] } },
      expect: ONE_OWNER,
    },
    {
      name: 'of an owner that is no VM',
      given: { metadata: { ownerReferences: [{ ...OWNER, apiVersion: 'v1', kind: 'Pod' }] } },
      expect: ONE_OWNER,
    },
    {
      name: 'of two owners',
      given: { metadata: { ownerReferences: [OWNER, { ...OWNER, name: 'vm2', uid: 'another' }] } },
      expect: ONE_OWNER,
    },
    { name: 'with another key', given: { data: { userdata: 'e30=' } }, expect: ONE_KEY },
    { name: 'with an annotation', given: { metadata: { annotations: { a: 'b' } } }, expect: ONE_KEY },
    { name: 'with a finalizer', given: { metadata: { finalizers: ['a.test/b'] } }, expect: ONE_KEY },
    { name: 'in kube-system', given: { metadata: { namespace: 'kube-system' } }, expect: IN_NAMESPACES },
    {
      name: 'in the namespace of Holdfast',
      given: { metadata: { namespace: 'holdfast-system' } },
      expect: IN_NAMESPACES,
    },
  ];
  for (const { name, given, expect: message } of denied) {
    it(`denies a Secret ${name}`, async () => {
      await expectDenial(guest.create(SECRETS, secret('new', given)), message);
    });
  }

  it('denies the change of a Secret of another VM, and of one that only looks like its own afterwards', async () => {
    await expectDenial(patch(guest, 'of-another', { data: { networkdata: 'W10=' } }), ONE_OWNER);
    await expectDenial(patch(guest, 'of-another', { metadata: { labels: { [LABEL]: 'vm-uid' } } }), OF_VM);
    await expectDenial(patch(guest, 'password', { metadata: { labels: { [LABEL]: 'vm-uid' } } }), OF_TYPE);
  });

  it('allows a Secret without an owner, as after a restore from a backup, to be taken over by a VM', async () => {
    const metadata = { labels: { [LABEL]: 'former' }, ownerReferences: [] };
    await cluster.admin.create(SECRETS, secret('restored', { metadata }));
    await cluster.admin.create(SECRETS, secret('restored-opaque', { type: 'Opaque', metadata }));
    const body = {
      metadata: { labels: { [LABEL]: 'vm-uid' }, ownerReferences: [OWNER] },
      data: { networkdata: 'W10=' },
    };
    await expectDenial(patch(guest, 'restored-opaque', body), OF_TYPE);
    const taken = await patch(guest, 'restored', body);
    expect(taken.metadata).to.deep.include(body.metadata);
    expect(taken).to.have.nested.property('data.networkdata', 'W10=');
    await expectDenial(patch(guest, 'restored', { metadata: { ownerReferences: [] } }), ONE_OWNER);
  });

  it('allows the text to be removed from the Secret of the VM only', async () => {
    await cluster.admin.create(SECRETS, secret('stale'));
    const metadata = { labels: { [LABEL]: 'vm-uid' }, ownerReferences: [OWNER] };
    expect(await patch(guest, 'stale', { metadata, data: { networkdata: null } })).to.not.have.property('data');
    await expectDenial(patch(guest, 'of-another', { metadata, data: { networkdata: null } }), OF_VM);
  });

  it('denies to delete a Secret, also to a user with all rights by RBAC', async () => {
    await expectDenial(mighty.delete(SECRETS, { namespace: VMS, name: 'own' }), IN_NAMESPACES);
  });

  it('lets the all-in-one process update its own certificates', async () => {
    const ref = { namespace: 'holdfast-system', name: 'holdfast-ipam-tls' };
    const labels = { 'app.kubernetes.io/name': 'holdfast' };
    const stored = await cluster.admin.create(SECRETS, { metadata: { ...ref, labels }, data: {} });
    await expectDenial(all.replace(SECRETS, { ...stored, data: { 'tls.crt': 'e30=' } }), undefined);
    await expectDenial(patch(mighty, ref.name, {}, ref.namespace), IN_NAMESPACES);
  });

  it('does not concern other users', async () => {
    await expectDenial(
      (await cluster.as('system:serviceaccount:tenant:default')).create(SECRETS, secret('theirs', { type: 'Opaque' })),
      undefined,
    );
  });
});
