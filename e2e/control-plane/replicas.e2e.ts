import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { clusterResource, namespacedResource } from '../../kube/resource.js';
import { NAMESPACES, NODES, PODS } from '../../kube/resources.js';
import { ensureBinaries } from '../../bed/build/binaries.js';
import { type ControlPlane, startControlPlane } from '../../bed/control-plane/control-plane.js';
import { startControllerManager, startScheduler } from '../../bed/control-plane/controllers.js';
import { nodeObject, nodeStatus } from '../../bed/node/node-object.js';
import { createAll } from '../../bed/control-plane/objects.js';
import { SERVICE_ACCOUNTS } from '../../bed/control-plane/service-accounts.js';
import { until } from '../../bed/processes/wait.js';
import { readInstallation } from '../../bed/holdfast/manifests.js';

const NAMESPACE = 'holdfast-system';
const WEBHOOK = { namespace: NAMESPACE, name: 'holdfast-webhook' };
const DEPLOYMENTS = namespacedResource<
  KubeObject & {
    spec: { replicas: number };
    status?: { updatedReplicas?: number; replicas?: number; readyReplicas?: number; observedGeneration?: number };
  }
>('apps/v1', 'deployments', 'Deployment');
const PRIORITY_CLASSES = clusterResource('scheduling.k8s.io/v1', 'priorityclasses', 'PriorityClass');

/** The node lifecycle controller reports a node as lost that has not reported for 50 s. */
const REPORT_MS = 10_000;

/** Why the scheduler has no node for the pod. */
function schedulingMessage({ status }: { readonly status?: unknown }): string | undefined {
  return (status as { conditions?: { message?: string }[] } | undefined)?.conditions?.[0]?.message;
}

/** The shipped Deployment of the webhook, with the real scheduler and the real controllers. There are no kubelets: the test reports pods as ready. */
describe('Replicas of the webhook', () => {
  let plane: ControlPlane;
  let reportedAt = 0;

  before(async function () {
    this.timeout(15 * 60_000);
    const binaries = await ensureBinaries(() => undefined, false);
    plane = await startControlPlane();
    startScheduler(plane, binaries.scheduler);
    startControllerManager(plane, binaries.controllerManager, false);
    await plane.client.create(NAMESPACES, { metadata: { name: NAMESPACE } });
    await plane.client.create(SERVICE_ACCOUNTS, { metadata: WEBHOOK });
    await until('the priority class', async () => {
      const found = await plane.client.find(PRIORITY_CLASSES, { name: 'system-cluster-critical' });
      return found !== undefined;
    });
  });
  after(() => plane.stop());

  beforeEach(async () => {
    const shipped = await readInstallation();
    await createAll(
      plane.client,
      shipped.filter(({ kind, metadata }) => kind === 'Deployment' && metadata.name === WEBHOOK.name),
    );
  });
  afterEach(async () => {
    await plane.client.delete(DEPLOYMENTS, WEBHOOK, { propagationPolicy: 'Background' });
    await until('no pod is left', async () => (await pods()).length === 0);
    for (const { metadata } of (await plane.client.list(NODES)).items) await plane.client.delete(NODES, metadata);
  });

  /** A cordoned node. The scheduler has to know all nodes before it may use one: otherwise it puts both replicas on the first. */
  async function addNode(name: string, spec: object = {}): Promise<void> {
    await plane.client.create(NODES, {
      ...nodeObject(name, Date.now()),
      spec: { ...spec, unschedulable: true },
    } as KubeObject);
    await reportReady(name);
  }

  async function uncordon(name: string): Promise<void> {
    await plane.client.patch(NODES, { name }, { type: 'merge', body: { spec: { unschedulable: null } } });
  }

  /** Without a Lease, the status itself is the heartbeat. The node lifecycle controller removes the taint of a new node. */
  async function reportReady(name: string): Promise<void> {
    const body = { status: nodeStatus(name, true, Date.now()) };
    await plane.client.patch(NODES, { name }, { type: 'merge', body }, { subresource: 'status' });
  }

  /** The pods that are not being deleted; the kubelets' part is done for all of them, and for their nodes. */
  async function pods() {
    if (Date.now() - reportedAt > REPORT_MS) {
      reportedAt = Date.now();
      for (const { metadata } of (await plane.client.list(NODES)).items) await reportReady(metadata.name);
    }
    const { items } = await plane.client.list(PODS, { namespace: NAMESPACE });
    for (const pod of items) {
      const { name, deletionTimestamp } = pod.metadata;
      if (deletionTimestamp !== undefined)
        await plane.client.delete(PODS, { namespace: NAMESPACE, name }, { gracePeriodSeconds: 0 });
      else if (pod.spec?.nodeName !== undefined && pod.status?.phase !== 'Running') await startPod(name);
    }
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  async function startPod(name: string): Promise<void> {
    const time = new Date().toISOString();
    const condition = (type: string) => ({ type, status: 'True', lastTransitionTime: time });
    const status = { phase: 'Running', conditions: ['PodScheduled', 'Ready', 'ContainersReady'].map(condition) };
    const ref = { namespace: NAMESPACE, name };
    await plane.client.patch(PODS, ref, { type: 'strategic', body: { status } }, { subresource: 'status' });
  }

  /** The nodes of the pods, when the rollout is complete. */
  function nodesOfAll(count = 2): Promise<string[]> {
    return until('all replicas run, of one version', async () => {
      const nodes = (await pods()).map(({ spec }) => spec?.nodeName);
      const { metadata, status } = await plane.client.get(DEPLOYMENTS, WEBHOOK);
      if (status?.observedGeneration !== metadata.generation) return undefined;
      const isDone = [status?.replicas, status?.readyReplicas, status?.updatedReplicas].every((each) => each === count);
      return isDone && nodes.length === count && !nodes.includes(undefined) ? (nodes as string[]).sort() : undefined;
    });
  }

  /** @returns the node of the running one, when the scheduler has no other node for the other one by the spread */
  function oneWaits(): Promise<string> {
    return until('one replica runs and one waits for a node of its own', async () => {
      const found = await pods();
      const running = found.filter(({ spec }) => spec?.nodeName !== undefined);
      const waiting = found.filter(({ spec }) => spec?.nodeName === undefined);
      // before there were nodes, the scheduler gave another reason
      const reason = waiting.map(schedulingMessage).at(0);
      if (running.length !== 1 || waiting.length !== 1) return undefined;
      const isSpread = ['topology spread constraints', 'unschedulable'].every((words) => reason?.includes(words));
      return isSpread ? running[0]?.spec?.nodeName : undefined;
    });
  }

  async function update(version: string): Promise<void> {
    const body = { spec: { template: { metadata: { annotations: { version } } } } };
    await plane.client.patch(DEPLOYMENTS, WEBHOOK, { type: 'merge', body });
  }

  it('run on different nodes of two, before and after each of three updates', async () => {
    await addNode('a');
    await addNode('b');
    await Promise.all(['a', 'b'].map(uncordon));
    expect(await nodesOfAll()).to.deep.equal(['a', 'b']);
    for (const version of ['1', '2', '3']) {
      await update(version);
      expect(await nodesOfAll(), version).to.deep.equal(['a', 'b']);
    }
  });

  it('run both on the only node of a cluster', async () => {
    await addNode('a');
    await uncordon('a');
    expect(await nodesOfAll()).to.deep.equal(['a', 'a']);
  });

  it('run on a tainted node of the control plane, too', async () => {
    await addNode('a');
    await addNode('b', { taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }] });
    await Promise.all(['a', 'b'].map(uncordon));
    expect(await nodesOfAll()).to.deep.equal(['a', 'b']);
  });

  it('wait for a second node rather than share one while the other is cordoned', async () => {
    await addNode('a');
    await addNode('b');
    await uncordon('a');
    expect(await oneWaits()).to.equal('a');
    await uncordon('b');
    expect(await nodesOfAll()).to.deep.equal(['a', 'b']);
  });
});
