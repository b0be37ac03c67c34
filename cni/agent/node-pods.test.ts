import { expect } from 'chai';
import { AgentWorld } from './testing/agent-world.js';
import { STATIC_UID, mirrorPod } from '../../test/objects/mirror-pod.js';
import { type NodePod, type PodRef, runtimeUidOf, transformNodePod } from './node-pods.js';

const REF = { namespace: 'vms', name: 'p1', uid: 'p1-uid' };

/** @returns the UID of the pod, or the error's code and message */
async function find(world: AgentWorld, ref: PodRef): Promise<string> {
  try {
    return (await world.pods.find(ref, world.call())).metadata.uid;
  } catch (error) {
    const { code, message } = error as { code?: number; message: string };
    return `${code} ${message}`;
  }
}

describe('the cached pods of a node', () => {
  let world: AgentWorld;

  beforeEach(() => {
    world = new AgentWorld();
  });

  it('are found in the cache by name and UID', async () => {
    world.tenantPod();
    expect(await find(world, REF)).to.equal('p1-uid');
    expect(world.reads).to.deep.equal([]);
  });

  it('are read live if the watch lags behind the runtime', async () => {
    world.tenantPod();
    world.podInformer.delete('vms/p1');
    expect(await find(world, REF)).to.equal('p1-uid');
  });

  it('are read live if the cache still has an earlier pod of that name', async () => {
    world.tenantPod(undefined, { uid: 'earlier' });
    world.put('pods', { ...world.tenantPod() });
    world.podInformer.set(transformNodePod({ metadata: { name: 'p1', namespace: 'vms', uid: 'earlier' } }));
    expect(await find(world, REF)).to.equal('p1-uid');
  });

  it('are read live if the runtime does not pass on the UID', async () => {
    world.tenantPod();
    expect(await find(world, { namespace: 'vms', name: 'p1' })).to.equal('p1-uid');
    expect(world.reads).to.deep.equal(['pods vms/p1']);
  });

  it('are retried if they do not exist', async () => {
    expect(await find(new AgentWorld(), REF)).to.match(
      /^11 pod vms.p1 does not exist: it was deleted, or the API server does not show it yet/,
    );
  });

  it('are refused if another pod has the name now', async () => {
    world.tenantPod();
    expect(await find(world, { ...REF, uid: 'earlier' })).to.match(
      /^100 pod vms.p1 has uid p1-uid, but the runtime requests uid earlier: that pod was deleted/,
    );
  });

  it('are refused if they are bound to another node', async () => {
    world.addPod({ metadata: { name: 'p1', namespace: 'vms', uid: 'p1-uid' } }, 'node2');
    expect(await find(world, REF)).to.equal('100 pod vms/p1 is bound to node node2, but this is node node1');
  });

  it('are found by the UID that the kubelet gave a static pod', async () => {
    world.addPod(mirrorPod('p1-uid', { namespace: 'vms', name: 'p1', nodeName: 'node1' }));
    const uids = [STATIC_UID, 'p1-uid', undefined].map(async (uid) => {
      const pod = await world.pods.find({ ...REF, uid }, world.call());
      return [pod.metadata.uid, runtimeUidOf(pod)];
    });
    const known = ['p1-uid', 'p1-uid'];
    expect(await Promise.all(uids)).to.deep.equal([['p1-uid', STATIC_UID], known, known]);
  });

  it('are not found by an annotation that the kubelet has not written', async () => {
    world.tenantPod(undefined, { annotations: { 'kubernetes.io/config.mirror': 'hash' } });
    expect(await find(world, { ...REF, uid: 'hash' })).to.match(
      /^100 pod vms.p1 has uid p1-uid, but the runtime requests/,
    );
  });

  it('are found only in the cache while the API server is not available', async () => {
    world.tenantPod();
    world.disconnect();
    expect(await find(world, REF)).to.equal('p1-uid');
    expect(await find(world, { ...REF, name: 'p2' })).to.match(
      /^11 the API server is not available, and the kubelet retries: connection refused/,
    );
  });

  it('notify handlers of changes and deletions', () => {
    const told: string[] = [];
    world.pods.onChange((pod: NodePod, gone) => told.push(`${pod.metadata.name} ${String(gone)}`));
    world.tenantPod();
    world.podInformer.delete('vms/p1');
    expect(told).to.deep.equal(['p1 false', 'p1 true']);
    expect(world.pods.get('p1-uid')).to.equal(undefined);
  });

  it('are cached with only the fields that are used', () => {
    const pod = {
      metadata: {
        name: 'p1',
        namespace: 'vms',
        uid: 'u',
        resourceVersion: '7',
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: { app: 'x', 'kubevirt.io': 'virt-launcher', 'kubevirt.io/migrationJobUID': 'm' },
        annotations: { 'k8s.v1.cni.cncf.io/networks': 'blue', other: 'x' },
        ownerReferences: [],
      },
      spec: { nodeName: 'node1', containers: [] },
      status: { phase: 'Running', conditions: [] },
    };
    expect(transformNodePod(pod)).to.deep.equal({
      metadata: {
        name: 'p1',
        namespace: 'vms',
        uid: 'u',
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/migrationJobUID': 'm' },
        annotations: { 'k8s.v1.cni.cncf.io/networks': 'blue' },
        ownerReferences: [],
      },
      spec: { nodeName: 'node1' },
      status: { phase: 'Running' },
    });
  });
});
