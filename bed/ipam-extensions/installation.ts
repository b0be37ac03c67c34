import type { Bed } from '../bed.js';
import { KUBEVIRT_NAMESPACE } from '../control-plane/kubevirt.js';
import { createAll, type Manifest, resourceOf } from '../control-plane/objects.js';
import { clusterRoleBindingOf } from '../control-plane/service-accounts.js';
import { HOLDFAST_NAMESPACE } from '../holdfast/install.js';
import { CONFIG_MAPS, MUTATING_WEBHOOK_CONFIGURATIONS } from '../../kube/resources.js';

/** The service account of kubevirt/ipam-extensions. Its namespace depends on who installs it. */
export const IPAM_EXTENSIONS_ACCOUNT = { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt-ipam-controller-manager' };

/** Webhooks are called in the order of their configurations' names. */
export const WEBHOOK_CONFIGURATION = 'kubevirt-ipam-controller-mutating-webhook-configuration';
export const WEBHOOK_PATH = '/mutate-v1-pod';

/** Creates the service account with its rights, and lists it in `claimWriters`, as the how-to says. */
export async function createAccount(bed: Bed): Promise<void> {
  const { namespace, name } = IPAM_EXTENSIONS_ACCOUNT;
  await createAll(bed.client, accountObjects());
  await setClaimWriters(bed, `system:serviceaccount:${namespace}:${name}`);
}

export async function removeAccount(bed: Bed): Promise<void> {
  await setClaimWriters(bed, '');
  await Promise.all(accountObjects().map((object) => bed.client.delete(resourceOf(object), object.metadata)));
}

function accountObjects(): Manifest[] {
  const { namespace, name } = IPAM_EXTENSIONS_ACCOUNT;
  const rbac = 'rbac.authorization.k8s.io';
  const read = ['get', 'list', 'watch'];
  const kubevirt = ['virtualmachines', 'virtualmachineinstances'];
  const rules = [
    { apiGroups: [''], resources: ['pods'], verbs: read },
    { apiGroups: ['kubevirt.io'], resources: kubevirt, verbs: read },
    { apiGroups: ['kubevirt.io'], resources: kubevirt.map((kind) => `${kind}/finalizers`), verbs: ['update'] },
    { apiGroups: ['k8s.cni.cncf.io'], resources: ['ipamclaims', 'network-attachment-definitions'], verbs: read },
    { apiGroups: ['k8s.cni.cncf.io'], resources: ['ipamclaims'], verbs: ['create', 'update'] },
  ];
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } },
    { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name }, rules },
    clusterRoleBindingOf({ namespace, name }, name),
  ];
}

/** @param url of its webhook */
export async function connectWebhook(bed: Bed, url: string, configuration = WEBHOOK_CONFIGURATION): Promise<void> {
  const webhook = {
    name: 'ipam-claims.k8s.cni.cncf.io',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    failurePolicy: 'Fail',
    objectSelector: { matchLabels: { 'kubevirt.io': 'virt-launcher' } },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['pods'] }],
    clientConfig: { url: `${url}${WEBHOOK_PATH}`, caBundle: bed.certificates.caBundle },
  };
  await bed.client.create(MUTATING_WEBHOOK_CONFIGURATIONS, { metadata: { name: configuration }, webhooks: [webhook] });
}

export async function disconnectWebhook(bed: Bed, configuration = WEBHOOK_CONFIGURATION): Promise<void> {
  await bed.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, { name: configuration });
}

async function setClaimWriters(bed: Bed, claimWriters: string): Promise<void> {
  const policies = { namespace: HOLDFAST_NAMESPACE, name: 'holdfast-policies' };
  await bed.client.patch(CONFIG_MAPS, policies, { type: 'merge', body: { data: { claimWriters } } });
}
