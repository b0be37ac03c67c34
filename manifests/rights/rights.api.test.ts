import { expect } from 'chai';
import { until } from '../../bed/processes/wait.js';
import type { Client } from '../../kube/client.js';
import { type Account, attributesOf, can, itHas } from '../testing/access-reviews.js';
import { usePolicyCluster } from '../testing/policy-cluster.js';

const READ = 'get list watch';
const WATCH = 'list watch';

/**
 * Everything that the identities of ipam and of agents may do: `resource.group[/subresource]`, in one namespace where `@`, of one name where `=`. What
 * is not here, or has no verb, is refused.
 */
const RIGHTS_OF_IPAM: Record<string, string> = {
  'addresspools.ipam.holdfast.dev': `${READ} create patch delete serve`,
  'addresspools.ipam.holdfast.dev/status': 'patch',
  'addresspools.ipam.holdfast.dev/finalizers': '',
  'addressleases.ipam.holdfast.dev': `${READ} create patch delete`,
  'addressleases.ipam.holdfast.dev/status': '',
  'addressblocks.ipam.holdfast.dev': `${READ} create patch delete`,
  'addressblocks.ipam.holdfast.dev/status': 'patch',
  'addressblocks.ipam.holdfast.dev/finalizers': '',
  'ipamclaims.k8s.cni.cncf.io': READ,
  'ipamclaims.k8s.cni.cncf.io/status': 'patch',
  'ipamclaims.k8s.cni.cncf.io/finalizers': '',
  'network-attachment-definitions.k8s.cni.cncf.io': WATCH,
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
  'events.': 'create patch',
  'serviceaccounts./token': '',
  'secrets.': '',
  'secrets.@default': '',
  'secrets.@holdfast-system': '',
  'secrets.@holdfast-system=holdfast-ipam-tls': `${READ} update`,
  'secrets.@holdfast-system=holdfast-webhook-tls': '',
  'leases.coordination.k8s.io': '',
  'leases.coordination.k8s.io@kube-system': '',
  'leases.coordination.k8s.io@holdfast-system': 'create',
  'leases.coordination.k8s.io@holdfast-system=holdfast-ipam': 'get create update',
  'leases.coordination.k8s.io@holdfast-system=holdfast-controller': 'create',
  'kubevirts.kubevirt.io': WATCH,
  'virtualmachines.kubevirt.io': '',
  'virtualmachineinstances.kubevirt.io': 'get',
  'validatingwebhookconfigurations.admissionregistration.k8s.io': '',
  'validatingwebhookconfigurations.admissionregistration.k8s.io=holdfast-ipam': `${READ} patch`,
  'validatingwebhookconfigurations.admissionregistration.k8s.io=another': '',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io=holdfast-webhook': '',
  'validatingadmissionpolicies.admissionregistration.k8s.io': '',
  'clusterroles.rbac.authorization.k8s.io': '',
  'clusterrolebindings.rbac.authorization.k8s.io': '',
  'customresourcedefinitions.apiextensions.k8s.io': '',
  'deployments.apps': '',
};

/** The rights that it has and the rights that it must not have. */
const RIGHTS_OF_WEBHOOK: Record<string, string> = {
  'virtualmachines.kubevirt.io': READ,
  'virtualmachineinstances.kubevirt.io': READ,
  'kubevirts.kubevirt.io': WATCH,
  'ipamclaims.k8s.cni.cncf.io': READ,
  'network-attachment-definitions.k8s.cni.cncf.io': READ,
  'namespaces.': WATCH,
  'resourcequotas.': '',
  'addresspools.ipam.holdfast.dev': WATCH,
  'pods.': '',
  'configmaps.@holdfast-system=holdfast-policies': WATCH,
  'configmaps.@holdfast-system=holdfast-served-networks': '',
  'secrets.': '',
  'secrets.@holdfast-system': '',
  'secrets.@holdfast-system=holdfast-webhook-tls': `${READ} update`,
  'secrets.@holdfast-system=holdfast-ipam-tls': '',
  'serviceaccounts./token@holdfast-system=holdfast-controller': '',
  'leases.coordination.k8s.io@holdfast-system': '',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': '',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io=holdfast-webhook': `${READ} patch`,
  'mutatingwebhookconfigurations.admissionregistration.k8s.io=holdfast-webhook-capacity': `${READ} patch`,
  'mutatingwebhookconfigurations.admissionregistration.k8s.io=another': '',
  'validatingwebhookconfigurations.admissionregistration.k8s.io=holdfast-ipam': '',
  'validatingadmissionpolicies.admissionregistration.k8s.io': '',
};

const RIGHTS_OF_CONTROLLER: Record<string, string> = {
  'virtualmachines.kubevirt.io': READ,
  'virtualmachineinstances.kubevirt.io': READ,
  'kubevirts.kubevirt.io': WATCH,
  'network-attachment-definitions.k8s.cni.cncf.io': WATCH,
  'pods.': WATCH,
  'namespaces.': WATCH,
  'resourcequotas.': WATCH,
  'configmaps.@holdfast-system=holdfast-policies': WATCH,
  'ipamclaims.k8s.cni.cncf.io': `${READ} create patch delete`,
  'ipamclaims.k8s.cni.cncf.io/status': '',
  'secrets.@holdfast-system': '',
  'events.': 'create patch',
};

const RIGHTS_OF_AGENTS: Record<string, string> = {
  'addresspools.ipam.holdfast.dev': READ,
  'addresspools.ipam.holdfast.dev/status': '',
  'addressleases.ipam.holdfast.dev': `${READ} create patch`,
  'addressleases.ipam.holdfast.dev/status': '',
  'addressblocks.ipam.holdfast.dev': WATCH,
  'addressblocks.ipam.holdfast.dev/status': 'patch',
  'addressblocks.ipam.holdfast.dev/finalizers': '',
  'ipamclaims.k8s.cni.cncf.io': 'get',
  'ipamclaims.k8s.cni.cncf.io/status': '',
  'network-attachment-definitions.k8s.cni.cncf.io': READ,
  'pods.': READ,
  'pods./status': '',
  'pods./exec': '',
  'pods./log': '',
  'namespaces.': 'get',
  'nodes.': '',
  'configmaps.': '',
  'configmaps.@holdfast-system=holdfast-policies': WATCH,
  'configmaps.@holdfast-system=holdfast-served-networks': '',
  'configmaps.@holdfast-agents': '',
  'events.': 'create patch',
  'serviceaccounts.@holdfast-agents=holdfast-agent': '',
  'serviceaccounts./token@holdfast-agents=holdfast-agent': '',
  'secrets.': '',
  'secrets.@holdfast-agents': '',
  'secrets.@holdfast-system': '',
  'leases.coordination.k8s.io@holdfast-agents': '',
  'kubevirts.kubevirt.io': WATCH,
  'virtualmachines.kubevirt.io': 'get',
  'virtualmachineinstances.kubevirt.io': 'get',
  'virtualmachineinstances.kubevirt.io/status': '',
  'validatingwebhookconfigurations.admissionregistration.k8s.io': '',
  'validatingadmissionpolicies.admissionregistration.k8s.io': '',
  'clusterroles.rbac.authorization.k8s.io': '',
  'customresourcedefinitions.apiextensions.k8s.io': '',
  'daemonsets.apps@holdfast-agents': '',
};

const RIGHTS_OF_CAPACITY: Record<string, string> = {
  'nodes.': WATCH,
  'nodes./status': 'patch',
  'nodes./proxy': '',
  'pods.': WATCH,
  'pods./status': '',
  'pods./exec': '',
  'pods./binding': '',
  'addresspools.ipam.holdfast.dev': WATCH,
  'addresspools.ipam.holdfast.dev/status': '',
  'addressleases.ipam.holdfast.dev': WATCH,
  'addressblocks.ipam.holdfast.dev': WATCH,
  'addressblocks.ipam.holdfast.dev/status': '',
  'ipamclaims.k8s.cni.cncf.io': '',
  'network-attachment-definitions.k8s.cni.cncf.io': '',
  'namespaces.': '',
  'configmaps.': '',
  'events.': '',
  'secrets.': '',
  'secrets.@holdfast-system': '',
  'leases.coordination.k8s.io': '',
  'leases.coordination.k8s.io@kube-node-lease': '',
  'leases.coordination.k8s.io@holdfast-system': 'create',
  'leases.coordination.k8s.io@holdfast-system=holdfast-capacity': 'get create update',
  'leases.coordination.k8s.io@holdfast-system=holdfast-ipam': 'create',
  'kubevirts.kubevirt.io': '',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': '',
  'validatingadmissionpolicies.admissionregistration.k8s.io': '',
  'clusterroles.rbac.authorization.k8s.io': '',
};

const RIGHTS_OF_GUEST: Record<string, string> = {
  'virtualmachines.kubevirt.io': WATCH,
  'virtualmachineinstances.kubevirt.io': WATCH,
  'virtualmachineinstances.kubevirt.io/status': '',
  'kubevirts.kubevirt.io': WATCH,
  'network-attachment-definitions.k8s.cni.cncf.io': WATCH,
  'ipamclaims.k8s.cni.cncf.io': WATCH,
  'ipamclaims.k8s.cni.cncf.io/status': 'patch',
  'addresspools.ipam.holdfast.dev': WATCH,
  'addresspools.ipam.holdfast.dev/status': '',
  'addressleases.ipam.holdfast.dev': `${READ} patch`,
  'addressblocks.ipam.holdfast.dev': '',
  'pods.': '',
  'pods./exec': '',
  'namespaces.': WATCH,
  'nodes.': '',
  'configmaps.': '',
  'configmaps.@holdfast-system=holdfast-policies': '',
  'events.': 'create patch',
  'serviceaccounts./token@holdfast-system=holdfast-guest': '',
  'secrets.': 'create patch',
  'secrets.@holdfast-system=holdfast-ipam-tls': 'create patch',
  'leases.coordination.k8s.io': '',
  'leases.coordination.k8s.io@holdfast-system': 'create',
  'leases.coordination.k8s.io@holdfast-system=holdfast-guest': 'get create update',
  'leases.coordination.k8s.io@holdfast-system=holdfast-ipam': 'create',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': '',
  'validatingadmissionpolicies.admissionregistration.k8s.io': '',
  'clusterroles.rbac.authorization.k8s.io': '',
};

const IPAM: Account = { namespace: 'holdfast-system', name: 'holdfast-ipam' };
const WEBHOOK: Account = { namespace: 'holdfast-system', name: 'holdfast-webhook' };
const CONTROLLER: Account = { namespace: 'holdfast-system', name: 'holdfast-controller' };
const CAPACITY: Account = { namespace: 'holdfast-system', name: 'holdfast-capacity' };
/** Policies limit them to three conditions and the lock of an address. */
const PATCHED_BY_GUEST = ['patch ipamclaims.k8s.cni.cncf.io/status', 'patch addressleases.ipam.holdfast.dev'];

const GUEST: Account = { namespace: 'holdfast-system', name: 'holdfast-guest' };
const AGENT: Account = { namespace: 'holdfast-agents', name: 'holdfast-agent' };
const RIGHTS: [Account, Record<string, string>][] = [
  [IPAM, RIGHTS_OF_IPAM],
  [AGENT, RIGHTS_OF_AGENTS],
  [CAPACITY, RIGHTS_OF_CAPACITY],
  [GUEST, RIGHTS_OF_GUEST],
  [WEBHOOK, RIGHTS_OF_WEBHOOK],
  [CONTROLLER, RIGHTS_OF_CONTROLLER],
];

describe('the rights of the identities of Holdfast, on a kube-apiserver', function () {
  let client: Client;

  usePolicyCluster(this, async ({ admin }) => {
    client = admin;
    await until('the rights are in force', async () => {
      const rights = ['pods.', 'leases.coordination.k8s.io@holdfast-system'].map((key) =>
        can(client, IPAM, attributesOf(key, 'create')),
      );
      return (await Promise.all(rights))[1];
    });
    for (const account of [IPAM, AGENT, CAPACITY, GUEST, WEBHOOK, CONTROLLER]) {
      const key = account === WEBHOOK || account === GUEST ? 'namespaces.' : 'pods.';
      await until('all of them are', () => can(client, account, attributesOf(key, 'list')));
    }
  });

  this.timeout(60_000);
  for (const [account, rights] of RIGHTS) itHas(() => client, account, rights);

  it('only ipam and agents may lease addresses, only ipam may serve pools, and only ipam and guest may write the status of claims', async () => {
    for (const name of [
      'holdfast-controller',
      'holdfast-webhook',
      'holdfast-capacity',
      'holdfast-guest',
      'holdfast-agent',
      'default',
    ]) {
      const account = { ...IPAM, name };
      for (const key of [
        'addressleases.ipam.holdfast.dev',
        'addresspools.ipam.holdfast.dev',
        'ipamclaims.k8s.cni.cncf.io/status',
      ]) {
        for (const verb of ['create', 'update', 'patch', 'delete', 'serve']) {
          const wanted = name === 'holdfast-guest' && PATCHED_BY_GUEST.includes(`${verb} ${key}`);
          expect(await can(client, account, attributesOf(key, verb)), `${name} ${verb} ${key}`).to.equal(wanted);
        }
      }
    }
  });
});
