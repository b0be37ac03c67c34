import { expect } from 'chai';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { until } from '../../bed/processes/wait.js';
import { applyManifests } from '../../bed/holdfast/manifests.js';
import { type Account, attributesOf, can, isRight, itHas } from '../testing/access-reviews.js';
import { kustomizeBase } from '../testing/render.js';
import { EMPTY_SERVER } from '../testing/shared-server.js';

const READ = 'get list watch';
const WATCH = 'list watch';
const ALL: Account = { namespace: 'holdfast-system', name: 'holdfast-all' };
const REPLACED = ['holdfast-controller', 'holdfast-webhook', 'holdfast-ipam', 'holdfast-guest'];

/** What it may do and, without a verb, what it must not be able to do. */
const RIGHTS_OF_ALL: Record<string, string> = {
  'ipamclaims.k8s.cni.cncf.io': `${READ} create patch delete`,
  'ipamclaims.k8s.cni.cncf.io/status': 'patch',
  'ipamclaims.k8s.cni.cncf.io/finalizers': '',
  'addresspools.ipam.holdfast.dev': `${READ} create patch delete serve`,
  'addressleases.ipam.holdfast.dev': `${READ} create patch delete`,
  'virtualmachines.kubevirt.io': READ,
  'virtualmachineinstances.kubevirt.io': READ,
  'virtualmachineinstances.kubevirt.io/status': '',
  'pods.': READ,
  'pods./status': '',
  'pods./exec': '',
  'pods./binding': '',
  'namespaces.': WATCH,
  'nodes.': READ,
  'nodes./status': '',
  'configmaps.': '',
  'configmaps.@holdfast-system=holdfast-policies': WATCH,
  'configmaps.@holdfast-system=holdfast-served-networks': 'get patch',
  // the policy network-data limits these to one type, in namespaces of VMs
  'secrets.': 'create patch',
  'secrets.@kube-system': 'create patch',
  'secrets.@holdfast-system': 'create patch',
  'secrets.@holdfast-system=holdfast-ipam-tls': `${READ} create update patch`,
  'secrets.@holdfast-system=holdfast-webhook-tls': `${READ} create update patch`,
  'secrets.@holdfast-system=another': 'create patch',
  'serviceaccounts.@holdfast-system': '',
  'serviceaccounts./token@holdfast-system=holdfast-all': '',
  'serviceaccounts./token@holdfast-agents=holdfast-agent': '',
  'leases.coordination.k8s.io@kube-system': '',
  'leases.coordination.k8s.io@holdfast-system=holdfast-capacity': 'create',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io=another': '',
  'validatingwebhookconfigurations.admissionregistration.k8s.io=another': '',
  'validatingadmissionpolicies.admissionregistration.k8s.io': '',
  'validatingadmissionpolicybindings.admissionregistration.k8s.io': '',
  'clusterroles.rbac.authorization.k8s.io': '',
  'clusterrolebindings.rbac.authorization.k8s.io': '',
  'roles.rbac.authorization.k8s.io@holdfast-system': '',
  'rolebindings.rbac.authorization.k8s.io@holdfast-system': '',
  'customresourcedefinitions.apiextensions.k8s.io': '',
  'deployments.apps@holdfast-system': '',
  'daemonsets.apps@holdfast-agents': '',
};

/** One right that each of controller, webhook, ipam and guest needs, for the cluster and for their namespace. */
const RIGHTS_OF_EACH = [
  ['ipamclaims.k8s.cni.cncf.io', 'create'],
  ['leases.coordination.k8s.io@holdfast-system=holdfast-controller', 'update'],
  ['mutatingwebhookconfigurations.admissionregistration.k8s.io=holdfast-webhook', 'patch'],
  ['secrets.@holdfast-system=holdfast-webhook-tls', 'update'],
  ['leases.coordination.k8s.io@holdfast-system=holdfast-guest', 'update'],
  ['addressleases.ipam.holdfast.dev', 'create'],
  ['secrets.@holdfast-system=holdfast-ipam-tls', 'update'],
  ['configmaps.@holdfast-system=holdfast-policies', 'list'],
] as const;

describe('the rights of the all-in-one process, on a kube-apiserver', function () {
  this.timeout(60_000);
  let plane: ControlPlane;

  EMPTY_SERVER.use(this, async (started) => {
    plane = started;
    const objects = await kustomizeBase(['all-in-one']);
    await applyManifests(
      plane.client,
      objects.filter((object) => object.kind === 'Namespace' || isRight(object)),
    );
    // the authorizer may see one binding later than another one
    for (const [key, verb] of RIGHTS_OF_EACH) {
      await until(`holdfast-all may ${verb} ${key}`, () => can(plane.client, ALL, attributesOf(key, verb)));
    }
  });

  itHas(() => plane.client, ALL, RIGHTS_OF_ALL);

  it('holdfast-all may not act as others, nor give rights that it lacks', async () => {
    const forbidden = [
      ['users.', 'impersonate'],
      ['groups.', 'impersonate'],
      ['serviceaccounts.@holdfast-agents=holdfast-agent', 'impersonate'],
      ['clusterroles.rbac.authorization.k8s.io', 'bind'],
      ['clusterroles.rbac.authorization.k8s.io', 'escalate'],
      ['roles.rbac.authorization.k8s.io@holdfast-system', 'bind'],
      ['roles.rbac.authorization.k8s.io@holdfast-system', 'escalate'],
    ] as const;
    for (const [key, verb] of forbidden)
      expect(await can(plane.client, ALL, attributesOf(key, verb)), `${verb} ${key}`).to.equal(false);
  });

  it('the accounts that it replaces, and one of its name in another namespace, have no rights', async () => {
    const replaced = REPLACED.map((name) => ({ ...ALL, name }));
    for (const account of [...replaced, { ...ALL, namespace: 'default' }]) {
      for (const [key, verb] of RIGHTS_OF_EACH) {
        const allowed = await can(plane.client, account, attributesOf(key, verb));
        expect(allowed, `${account.name} ${verb} ${key}`).to.equal(false);
      }
    }
  });
});
