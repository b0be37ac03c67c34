import type { VirtualMachine } from '../../api/kubevirt.js';
import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { PERSISTENT_IPS_DISABLED, PERSISTENT_IPS_LABEL } from '../../api/names.js';
import { StatusError } from '../../kube/errors.js';
import { exitCodeOf, formatChecks } from '../doctor/check-report.js';
import { CLUSTER_ROLE_BINDINGS, DEPLOYMENTS, type InstalledWorkload } from '../installation.js';
import type { Read, Unread } from '../reader.js';
import { textOf } from '../terminal.js';
import { MemoryCluster } from '../testing/memory-cluster.js';
import { type ObservedTarget, observeTarget } from './observe.js';
import { preflight } from './preflight.js';

const found = <T>(value: T): Read<T> => ({ kind: 'found', value });
const unread = (kind: Unread['kind'], why: string): Unread => {
  return { kind, why, error: new StatusError({ request: 'GET', status: 403, reason: 'Forbidden', message: why }) };
};

function multus(folder: string, image: string): InstalledWorkload {
  const volumes = [{ name: 'cnibin', hostPath: { path: folder } }];
  const template = { spec: { containers: [{ name: 'kube-multus', image }], volumes } };
  return { metadata: { namespace: 'kube-system', name: 'kube-multus-ds' }, spec: { template } };
}

function nad(name: string, config: object) {
  return {
    metadata: { namespace: 'lab', name },
    spec: { config: JSON.stringify({ name, type: 'bridge', ...config }) },
  };
}

function vm(name: string, networkName: string, more: object = {}): VirtualMachine {
  const networks = [{ name: 'data', multus: { networkName } }];
  const interfaces = [{ name: 'data', bridge: {}, ...more }];
  return {
    metadata: { namespace: 'lab', name },
    spec: { template: { spec: { networks, domain: { devices: { interfaces } } } } },
  };
}

/** A cluster in which nothing stands in the way. */
const FINE: ObservedTarget = {
  version: found('v1.34.1+k3s1'),
  kubevirts: found([
    {
      metadata: { namespace: 'kubevirt', name: 'kubevirt' },
      spec: { configuration: { developerConfiguration: { featureGates: ['LiveUpdateNADRef'] } } },
      status: { phase: 'Deployed', observedKubeVirtVersion: 'v1.8.0' },
    },
  ]),
  nads: found([]),
  vms: found([]),
  namespaces: found([{ metadata: { name: 'lab' } }]),
  daemonSets: found([multus('/opt/cni/bin/', 'ghcr.io/k8snetworkplumbingwg/multus-cni:v4.2.2-thick')]),
  deployments: found([]),
  ownNamespaces: found(new Set(['holdfast-system'])),
  webhooks: found([]),
  endpoints: found([{ metadata: { name: 'kubernetes' }, ports: [{ port: 6443 }] }]),
  networkPolicies: found([]),
  macPool: undefined,
};

const holdfastIpam = { type: 'holdfast', subnets: [{ cidr: '10.0.0.0/24' }] };
const PERSISTENT = nad('blue', { allowPersistentIPs: true, ipam: holdfastIpam });

describe('kubectl holdfast preflight', () => {
  const linesOf = (change: Partial<ObservedTarget>) =>
    formatChecks(preflight({ ...FINE, ...change }), 'nothing stands in the way')
      .lines(false)
      .map(textOf);

  it('has one line for each check of a cluster in which nothing stands in the way', () => {
    expect(linesOf({})).to.deep.equal([
      'OK holdfast: is not installed yet',
      'OK kubernetes: Kubernetes v1.34.1+k3s1',
      'OK kubevirt: KubeVirt v1.8.0 in namespace kubevirt, with feature gates LiveUpdateNADRef',
      'OK multus: DaemonSet kube-system/kube-multus-ds, thick v4.2.2-thick',
      'OK cni-folder: Multus uses /opt/cni/bin',
      'OK ports: the API server listens on port 6443; Holdfast uses no port of a node',
      'OK policies: nothing is known that stops pods of Holdfast or their connections',
      'OK ipams: no other software is known to write IPAMClaims',
      'OK networks: 0 NADs, 0 of them with allowPersistentIPs: VMs on those keep their addresses',
      'OK vms: no VM gets an IPAMClaim',
      'OK mac-addresses: each interface with bridge binding on a persistent network has a MAC address of its own',
      'nothing stands in the way',
    ]);
    expect(exitCodeOf(preflight(FINE))).to.equal(0);
  });

  it('finds Holdfast in the namespaces of its accounts, and says if these may not be read', async () => {
    const labels = { 'app.kubernetes.io/name': 'holdfast' };
    const subjects = [{ kind: 'ServiceAccount', namespace: 'network', name: 'holdfast-controller' }];
    const cluster = new MemoryCluster()
      .put(DEPLOYMENTS, { metadata: { namespace: 'network', name: 'holdfast-controller' } })
      .put(CLUSTER_ROLE_BINDINGS, { metadata: { name: 'holdfast-controller', labels }, subjects });
    const check = async () => {
      const observed = await observeTarget(cluster.client, () => undefined);
      return preflight({ ...observed, version: FINE.version })[0];
    };
    expect((await check())?.message).to.include('is installed: network/holdfast-controller');
    cluster.refused.add('clusterrolebindings');
    expect((await check())?.state).to.equal('unchecked');
  });

  it('does not say that Holdfast is missing if its workloads may not be read', () => {
    const nads = found([nad('blue', { ipam: holdfastIpam })]);
    expect(linesOf({ nads }).join()).to.include('its pods start only when Holdfast runs');
    const deployments = unread('forbidden', 'you may not');
    expect(linesOf({ nads, deployments }).join()).not.to.include('its pods start only when Holdfast runs');
  });

  const policy: KubeObject = {
    kind: 'NetworkPolicy',
    metadata: { namespace: 'holdfast-system', name: 'default-deny' },
  };
  const labelled = (name: string, label: string, value: string) => ({ metadata: { name, labels: { [label]: value } } });
  const level = labelled('holdfast-agents', 'pod-security.kubernetes.io/enforce', 'restricted');
  const deployment = (name: string) => ({ metadata: { namespace: 'other', name } });
  const kubevirt = { metadata: { namespace: 'openshift-cnv', name: 'kubevirt' }, status: { phase: 'Deployed' } };
  const engine = {
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'kyverno' },
    webhooks: [{ name: 'all.kyverno', rules: [{ resources: ['*'] }], clientConfig: {} }],
  };
  const cases: readonly [string, Partial<ObservedTarget>, 'error' | 'warning', RegExp][] = [
    ['an old Kubernetes', { version: found('v1.30.9') }, 'error', /needs 1\.31 or newer/],
    [
      'a cluster without KubeVirt',
      { kubevirts: unread('unserved', 'not served') },
      'error',
      /KubeVirt is not installed/,
    ],
    [
      'KubeVirt in another namespace',
      { kubevirts: found([kubevirt]) },
      'warning',
      /set kubevirtNamespace to openshift-cnv/,
    ],
    ['a cluster without Multus', { nads: unread('unserved', 'not served') }, 'error', /install Multus first/],
    ['an old Multus', { daemonSets: found([multus('/opt/cni/bin', 'multus:v3.9.3')]) }, 'error', /needs 4 or newer/],
    [
      'another folder of CNI plugins',
      { daemonSets: found([multus('/var/lib/rancher/k3s/data/cni', 'multus:v4.2.2')]) },
      'warning',
      /set agent\.cniBinDir to \/var\/lib\/rancher\/k3s\/data\/cni: .*how-to\/install\.md#adapt-the-nodes/,
    ],
    [
      'another port of the API server',
      { endpoints: found([{ metadata: { name: 'kubernetes' }, ports: [{ port: 16443 }] }]) },
      'warning',
      /port 16443/,
    ],
    ['a namespace that refuses agents', { namespaces: found([level]) }, 'error', /enforce=privileged/],
    [
      'a policy that denies connections',
      { networkPolicies: found([policy]) },
      'warning',
      /holdfast-system\/default-deny/,
    ],
    ['a policy engine', { webhooks: found([engine]) }, 'warning', /ValidatingWebhookConfiguration kyverno/],
    [
      'kubevirt/ipam-extensions',
      { deployments: found([deployment('kubevirt-ipam-controller-manager')]) },
      'warning',
      /move-from-ipam-extensions/,
    ],
    [
      'OVN-Kubernetes',
      { daemonSets: found([multus('/opt/cni/bin', 'multus:v4.2.2'), deployment('ovnkube-node')]) },
      'warning',
      /set statusWriters/,
    ],
    ['a NAD that delegates to Holdfast', { nads: found([PERSISTENT]) }, 'warning', /start only when Holdfast runs/],
    [
      'a NAD whose IPAM honours no claim',
      { nads: found([nad('old', { allowPersistentIPs: true, ipam: { type: 'whereabouts', range: '10.0.0.0/24' } })]) },
      'warning',
      /whereabouts allocates its addresses and honours no claim[\s\S]*moving-from-whereabouts/,
    ],
    [
      'a persistent layer-2 NAD',
      { nads: found([nad('flat', { allowPersistentIPs: true })]) },
      'warning',
      /create a pool with spec\.guest/,
    ],
    [
      'a misspelled flag',
      { nads: found([nad('typo', { allowPersistentIP: true })]) },
      'warning',
      /write allowPersistentIPs/,
    ],
    [
      'VMs whose MAC addresses change',
      { nads: found([PERSISTENT]), vms: found([vm('web', 'blue')]) },
      'warning',
      /lab\/web\. Such a guest has another MAC address at each start, and loses DHCP after a live migration/,
    ],
    [
      'KubeMacPool with its default range',
      { macPool: { start: '02:00:00:00:00:00', end: '02:ff:ff:ff:ff:ff' } },
      'warning',
      /a range of its own/,
    ],
  ];
  for (const [what, change, state, text] of cases) {
    it(`names cause and remedy of ${what}`, () => {
      const reports = preflight({ ...FINE, ...change });
      expect(linesOf(change).join('\n')).to.match(text);
      expect(reports.map((each) => each.state)).to.include(state);
      expect(exitCodeOf(reports)).to.equal(state === 'error' ? 3 : 0);
    });
  }

  it('does not warn of networks of OVN-Kubernetes, nor of addresses that KubeMacPool or the VM sets', () => {
    const ovn = nad('ovn', { type: 'ovn-k8s-cni-overlay', allowPersistentIPs: true });
    const vms = found([vm('web', 'ovn', { macAddress: '02:00:00:00:00:01' })]);
    expect(linesOf({ nads: found([ovn]), vms }).at(-1)).to.equal('nothing stands in the way');
    const macPool = { start: '02:aa:00:00:00:00', end: '02:aa:ff:ff:ff:ff' };
    expect(linesOf({ nads: found([ovn]), vms: found([vm('web', 'ovn')]), macPool }).join('\n'))
      .to.include('KubeMacPool writes MAC addresses into VMs, from 02:aa:00:00:00:00')
      .and.to.include('nothing stands in the way');
  });

  it('counts the VMs that get claims, without those of a namespace that is left out', () => {
    const given = { nads: found([PERSISTENT]), vms: found([vm('web', 'blue'), vm('other', 'elsewhere')]) };
    expect(linesOf(given).find((line) => line.startsWith('OK vms')))
      .to.include('1 VM with 1 interface')
      .and.to.include('lab/web');
    const namespaces = found([labelled('lab', PERSISTENT_IPS_LABEL, PERSISTENT_IPS_DISABLED)]);
    expect(linesOf({ ...given, namespaces })).to.include('OK vms: no VM gets an IPAMClaim');
  });

  it('takes a Kubernetes that was built without a version for no old one', () => {
    expect(linesOf({ version: found('v0.0.0-master+$Format:%H$') }).at(-1)).to.equal('nothing stands in the way');
  });

  it('says of each check that it was not made which right the user lacks', () => {
    const refused = unread('forbidden', 'user "eve" may not list daemonsets.apps in the whole cluster');
    const reports = preflight({ ...FINE, daemonSets: refused });
    expect(linesOf({ daemonSets: refused })).to.include(`NOT CHECKED cni-folder: ${refused.why}`);
    expect(exitCodeOf(reports)).to.equal(0);
  });

  it('has an exit code of its own if nothing could be checked', () => {
    const refused = unread('forbidden', 'you may not');
    const all = Object.fromEntries(Object.keys(FINE).map((key) => [key, refused])) as unknown as ObservedTarget;
    const reports = preflight({ ...all, macPool: undefined });
    expect(exitCodeOf(reports)).to.equal(4);
    expect(formatChecks(reports, '').data).to.include({ checked: false, healthy: false });
  });
});
