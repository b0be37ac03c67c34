import type { KubeObject } from '../../api/meta.js';
import { BLOCK_FINALIZER, CAPACITY_PREFIX, IPAM_API_VERSION, POOL_FINALIZER } from '../../api/names.js';
import { readInstallation } from '../../bed/holdfast/manifests.js';
import { KEPT_POLICY, type UninstallOptions } from '../uninstall/plan.js';
import { InstalledCluster, ownClaim } from './installed-cluster.js';

export const PLAIN: UninstallOptions = { everything: false, ignoreRunningPods: false, yes: false, dryRun: false };
export const EVERYTHING: UninstallOptions = { ...PLAIN, everything: true, yes: true };

/** An object of Holdfast. */
export const own = (kind: string, name: string, finalizers: string[], spec: object = {}) =>
  ({ apiVersion: IPAM_API_VERSION, kind, metadata: { name, finalizers }, spec }) as KubeObject;

export const processPod = (namespace: string, name: string, component: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    namespace,
    name,
    labels: { 'app.kubernetes.io/name': 'holdfast', 'app.kubernetes.io/component': component },
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid: 'workload', controller: true }],
  },
});

/** Objects of tenants and of other software, which stay. */
export const FOREIGN: readonly KubeObject[] = [
  {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'ipamclaims.k8s.cni.cncf.io' },
  },
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant' } },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'tenant', name: 'holdfast' } },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'tenant', name: 'climbing', labels: { 'app.kubernetes.io/name': 'holdfast' } },
  },
  ownClaim('tenant/of-others', { annotations: {} }),
  {
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { namespace: 'tenant', name: 'blue' },
    spec: { config: '{"name":"blue","type":"bridge","ipam":{"type":"holdfast","subnets":[{"cidr":"10.0.0.0/24"}]}}' },
  } as KubeObject,
];

export const DATA: readonly KubeObject[] = [
  ownClaim('tenant/vm1.data'),
  ownClaim('tenant/vm2.data', { deletionTimestamp: '2026-01-01T00:00:00Z' }),
  own('AddressPool', 'blue.tenant', [POOL_FINALIZER], { network: 'blue' }),
  own('AddressBlock', 'blue.0', [BLOCK_FINALIZER]),
  own('AddressLease', 'blue.10-0-0-1', [], { owner: { kind: 'IPAMClaim', uid: 'x' } }),
  own('AddressLease', 'blue.10-0-0-2', [], { owner: { kind: 'Pod', uid: 'gone' } }),
];

export const NODE = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node-1' },
  status: { capacity: { cpu: '4', [`${CAPACITY_PREFIX}blue`]: '9' }, allocatable: { [`${CAPACITY_PREFIX}blue`]: '9' } },
} as KubeObject;

/** The shipped manifests, without the fields that the command does not read. */
export const MANIFESTS: readonly KubeObject[] = (await readInstallation()).map((object) => {
  const { apiVersion, kind, metadata, spec, subjects } = object;
  return {
    ...{ apiVersion, kind, metadata },
    ...(kind === 'DaemonSet' && { spec }),
    ...(kind === 'ClusterRoleBinding' && { subjects }),
  };
});

/** What stays when the tool that installed Holdfast removes it. */
export const KEPT = MANIFESTS.filter(
  ({ kind, metadata }) => kind === 'CustomResourceDefinition' || metadata.name === KEPT_POLICY.name,
);

/** A cluster in which Holdfast runs and has data. */
export function installed(more: readonly KubeObject[] = []): InstalledCluster {
  return uninstalled([
    ...MANIFESTS,
    processPod('holdfast-agents', 'holdfast-agent-1', 'agent'),
    processPod('holdfast-system', 'holdfast-controller-1', 'controller'),
    ...more,
  ]);
}

/** A cluster with the data of Holdfast, from which a tool has removed the processes. */
export function uninstalled(more: readonly KubeObject[] = []): InstalledCluster {
  return new InstalledCluster([...KEPT, ...FOREIGN, ...DATA, NODE, ...more]);
}
