import { expect } from 'chai';
import { LEASE_NODE } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import { SERVICE_ACCOUNTS } from '../../bed/control-plane/service-accounts.js';
import { readInstallation } from '../../bed/holdfast/manifests.js';
import { ADDRESS_LEASES, NODES, PODS } from '../../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';
import {
  AGENT,
  AGENT_USER,
  CLAIM,
  ON_NODE_1,
  ON_NODE_2,
  RESERVED,
  WEB,
  changed,
  lease,
} from '../testing/node-leases.js';

/** Two names that differ only after the length of a label. */
const LONG = [1, 2].map((last) => `${'node-with-a-name-that-is-longer-than-a-label-may-be'.repeat(2)}-${last}`);
const [LONG_1, LONG_2] = LONG as [string, string];

const RELEASED_AT = { spec: { releasedAt: '2020-01-01T00:00:00Z' } };
const OWN_NODE = 'allocates addresses to pods of that node only, and spec.node is';
const NO_NODE = `the token of ${AGENT_USER} is not bound to a node, and an agent may allocate addresses only on its own node: run it as the DaemonSet`;

interface Workload {
  metadata: { name: string; namespace: string };
  spec: { template: Pod };
}

describe('the identity of agents, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  let workloads: Workload[] = [];
  let count = 0;

  usePolicyCluster(this, async (started) => {
    const shipped = await readInstallation();
    workloads = shipped.filter(({ kind }) => ['Deployment', 'DaemonSet'].includes(kind)) as unknown as Workload[];
    cluster = started;
    for (const name of ['node-1', 'node-2', ...LONG]) await cluster.admin.create(NODES, { metadata: { name } });
    const lost = await cluster.withToken(AGENT);
    await untilDenied(() => lost.create(ADDRESS_LEASES, lease(), { dryRun: true }));
  });

  /** A pod as the workload's controller makes it, but for the scheduler's part. */
  function podOf({ metadata, spec: { template } }: Workload, namespace = metadata.namespace): Pod {
    count += 1;
    const { labels } = template.metadata;
    const spec = { ...template.spec, nodeName: 'node-2', priorityClassName: undefined };
    return { metadata: { name: `${metadata.name}-x${count}`, namespace, labels }, spec } as Pod;
  }

  function agents(): Workload {
    const found = workloads.find(({ metadata }) => metadata.name === AGENT.name);
    if (found === undefined) throw new Error('there is no DaemonSet of agents');
    return found;
  }

  it('an agent whose token names no node cannot write leases, and the message says what to do', async () => {
    const lost = await cluster.withToken(AGENT);
    await expectDenial(lost.create(ADDRESS_LEASES, lease()), NO_NODE);
    await expectDenial(lost.create(ADDRESS_LEASES, lease({ owner: WEB })), '--bound-object-kind Node');
    const { metadata } = await cluster.admin.create(ADDRESS_LEASES, lease({ owner: WEB }));
    await expectDenial(lost.patch(ADDRESS_LEASES, metadata, { type: 'merge', body: RELEASED_AT }), NO_NODE);
    await cluster.admin.delete(ADDRESS_LEASES, metadata);
  });

  it('the policy applies to a service account of the same name in another namespace', async () => {
    const namesake = await cluster.as('system:serviceaccount:elsewhere:holdfast-agent', 'node-1');
    await expectDenial(namesake.create(ADDRESS_LEASES, lease(ON_NODE_2), { dryRun: true }), OWN_NODE);
  });

  it('the policy requires a node of agents only', async () => {
    const ipam = await cluster.asRestricted('system:serviceaccount:holdfast-system:holdfast-ipam');
    await expectDenial(ipam.create(ADDRESS_LEASES, lease({ ...ON_NODE_2, owner: CLAIM }), { dryRun: true }), undefined);
    await expectDenial(cluster.admin.create(ADDRESS_LEASES, RESERVED, { dryRun: true }), undefined);
  });

  it('the policy distinguishes nodes whose names are too long for a label', async () => {
    const longAgent = await cluster.withToken(AGENT, { node: LONG_1 });
    const own = lease({ ...ON_NODE_1, node: LONG_1 });
    await expectDenial(longAgent.create(ADDRESS_LEASES, own, { dryRun: true }), undefined);
    const other = lease({ ...ON_NODE_1, node: LONG_2 });
    await expectDenial(longAgent.create(ADDRESS_LEASES, other, { dryRun: true }), `and spec.node is "${LONG_2}"`);
    for (const label of ['node-1', `another-${'0'.repeat(10)}`, LONG_1.slice(0, 62)]) {
      const forged = changed(own, { labels: { [LEASE_NODE]: label } });
      await expectDenial(
        longAgent.create(ADDRESS_LEASES, forged, { dryRun: true }),
        'labels of a lease must match its spec, and these do not: ipam.holdfast.dev/node;',
      );
    }
  });

  it('the token of a pod of the DaemonSet names the node of the pod', async () => {
    const { metadata } = await cluster.admin.create(PODS, podOf(agents()));
    const inPod = await cluster.withToken(AGENT, { pod: metadata.name });
    await expectDenial(inPod.create(ADDRESS_LEASES, lease(ON_NODE_2), { dryRun: true }), undefined);
    await expectDenial(inPod.create(ADDRESS_LEASES, lease(), { dryRun: true }), 'the agent of node node-2 allocates');
  });

  it('Pod Security admits all pods of Holdfast in their namespaces, and agents in no other namespace', async () => {
    // controller, webhook, ipam, capacity, guest, agent
    expect(workloads).to.have.length(6);
    for (const workload of workloads) {
      await expectDenial(cluster.admin.create(PODS, podOf(workload), { dryRun: true }), undefined);
    }
    const { admin } = cluster;
    await admin.create(SERVICE_ACCOUNTS, { metadata: { name: AGENT.name, namespace: 'holdfast-system' } });
    const elsewhere = admin.create(PODS, podOf(agents(), 'holdfast-system'), { dryRun: true });
    await expectDenial(elsewhere, 'violates PodSecurity "restricted:latest"');
  });
});
