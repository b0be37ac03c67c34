import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import type { VirtualMachine } from '../../api/kubevirt.js';
import { MIRROR_POD_ANNOTATION } from '../../api/names.js';
import {
  ADDRESS_LEASES,
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { HEALTHY, ago } from '../testing/healthy-cluster.js';
import { MemoryCluster } from '../testing/memory-cluster.js';
import { DEPLOYMENTS } from '../installation.js';
import { apiError } from '../../test/api-errors.js';
import { checkLeaks } from './check-addressing.js';
import { checkPolicies } from './check-admission.js';
import { checkProcesses } from './check-processes.js';
import { type ObservedCluster, observeCluster } from './observe.js';
import type { ProbingReader } from './probe.js';

const HOUR_MS = 3_600_000;
const vmIn = (namespace: string): VirtualMachine => ({ metadata: { namespace, name: 'vm1', uid: `${namespace}-vm1` } });
const nadIn = (namespace: string) => ({ metadata: { namespace, name: 'blue' }, spec: { config: '{"name": "blue"}' } });
const claimIn = (namespace: string) => ({
  metadata: { namespace, name: 'vm1.data', uid: `${namespace}-claim` },
  spec: { network: 'blue', interface: 'pod1' },
});
const keysOf = (objects: readonly KubeObject[] | undefined) =>
  objects?.map(({ metadata: { namespace = '', name } }) => `${namespace}/${name}`);

describe('what the doctor reads', () => {
  let cluster: MemoryCluster;

  beforeEach(() => {
    cluster = new MemoryCluster()
      .put(NAMESPACES, { metadata: { name: 'lab' } }, { metadata: { name: 'other' } })
      .put(VIRTUAL_MACHINES, vmIn('lab'), vmIn('other'))
      .put(IPAM_CLAIMS, claimIn('lab'), claimIn('other'))
      .put(NETWORK_ATTACHMENT_DEFINITIONS, nadIn('lab'), nadIn('other'));
  });

  function observe(): Promise<ObservedCluster> {
    const { client } = cluster;
    const reader = {
      listAs: client.listAs.bind(client),
      create: (_kind: unknown, object: KubeObject) => Promise.resolve(object),
      // a RoleBinding of the ClusterRole view lets its users get their own namespace
      get: (_kind: unknown, { name }: { name: string }) => Promise.resolve(cluster.find(NAMESPACES, name)),
    } as unknown as ProbingReader['client'];
    return observeCluster(reader, { withData: true, home: 'lab', showProgress: () => undefined });
  }

  it('is of one namespace only where the user may not read the whole cluster, with the labels of that namespace', async () => {
    for (const plural of ['virtualmachines', 'namespaces']) cluster.refused.add(plural);
    const { vms, claims, nads, namespaces, onlyNamespace, narrowed } = await observe();
    expect(keysOf(vms)).to.deep.equal(['lab/vm1']);
    expect(keysOf(claims)).to.deep.equal(['lab/vm1.data', 'other/vm1.data']);
    expect(keysOf(nads)).to.deep.equal(['lab/blue', 'other/blue']);
    expect(keysOf(namespaces)).to.deep.equal(['/lab']);
    expect({ onlyNamespace, narrowed }).to.deep.equal({ onlyNamespace: 'lab', narrowed: ['vms'] });
  });

  it('is unknown, and not absent, where the user may not read in which namespaces Holdfast is installed', async () => {
    const labels = { 'app.kubernetes.io/name': 'holdfast', 'app.kubernetes.io/component': 'controller' };
    cluster.put(DEPLOYMENTS, { metadata: { namespace: 'network', name: 'holdfast-controller', labels } });
    cluster.refused.add('clusterrolebindings');
    const observed = await observe();
    expect(checkProcesses(observed, '1.0.0')).to.deep.equal([]);
    expect(checkPolicies(observed).filter(({ object }) => object.startsWith('ConfigMap'))).to.deep.equal([]);
    expect(observed.refused.join()).to.include('may not list clusterrolebindings.rbac.authorization.k8s.io');
  });

  it('ends with the error of an API server that does not say in which namespaces Holdfast is installed', async () => {
    const serve = cluster.serve.bind(cluster);
    const failure = apiError(500, 'InternalError', 'etcd is away', '');
    cluster.serve = (request) => {
      if (request.path.endsWith('/clusterrolebindings')) throw failure;
      return serve(request);
    };
    expect(await observe().catch((error: unknown) => error)).to.equal(failure);
  });

  it('finds the owner of the lease of a static pod, which has the UID of the manifest', async () => {
    const { metadata, spec } = leaseOf('10.0.0.5', 1);
    const owner = { kind: 'Pod' as const, namespace: 'kube-system', name: 'vip-node-1', uid: 'manifest' };
    cluster.put(ADDRESS_LEASES, {
      metadata: { ...metadata, creationTimestamp: ago(HOUR_MS) },
      spec: { ...spec, owner },
    });
    const mirrorPod = {
      metadata: {
        ...{ namespace: 'kube-system', name: 'vip-node-1', uid: 'mirror' },
        annotations: { [MIRROR_POD_ANNOTATION]: 'manifest' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-1', uid: 'node-uid', controller: true }],
      },
      spec: { nodeName: 'node-1' },
    };
    const leaks = async () => checkLeaks({ ...(await observe()), now: HEALTHY.now }).length;
    expect(await leaks()).to.equal(1);
    cluster.put(PODS, mirrorPod);
    expect(await leaks()).to.equal(0);
  });

  it('contains the NAD of each VM, also if both are created meanwhile', async () => {
    let isCreated = false;
    cluster.afterList = ({ plural }) => {
      if (plural !== 'network-attachment-definitions' || isCreated) return;
      isCreated = true;
      cluster.put(VIRTUAL_MACHINES, vmIn('new')).put(NETWORK_ATTACHMENT_DEFINITIONS, nadIn('new'));
    };
    const { vms, nads } = await observe();
    expect(isCreated).to.equal(true);
    const known = nads?.map(({ metadata }) => metadata.namespace);
    expect(vms?.every(({ metadata }) => known?.includes(metadata.namespace))).to.equal(true);
  });
});
