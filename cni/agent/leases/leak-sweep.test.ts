import { expect } from 'chai';
import type { Pod } from '../../../api/pod.js';
import { compiledPool } from '../../../test/objects/lease-objects.js';
import { COLLECT_AFTER_MS } from '../testing/model/lease-agent.js';
import { LeaseAgentWorld, OTHER, callOf } from '../testing/model/lease-agent-world.js';
import { STATIC_UID, mirrorPod } from '../../../test/objects/mirror-pod.js';
import { TransportError } from '../../../kube/errors.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';

const POOL = compiledPool({ cidr: '10.0.0.0/24' });
const GREEN = compiledPool({ cidr: '10.1.0.0/24', network: 'green' }, 'green');
const UNSENT = { error: new TransportError('unsent', 'nobody listens'), applied: false };

function podOf(name: string, more: Partial<Pod> = {}): Pod {
  return { ...more, metadata: { namespace: 'apps', name, uid: `${name}-uid`, ...more.metadata } };
}

/** Starts a pod with an address. */
async function sceneWithPod(): Promise<LeaseAgentWorld> {
  const scene = new LeaseAgentWorld(POOL, GREEN);
  scene.cluster.setPod(podOf('web'));
  await scene.add();
  scene.follow();
  await scene.pass(COLLECT_AFTER_MS);
  scene.requests();
  return scene;
}

/** Runs enough rounds to release a lease that always looks leaked. */
async function looks(scene: LeaseAgentWorld): Promise<void> {
  for (let look = 0; look < 4; look++) await scene.pass(COLLECT_AFTER_MS / 2);
}

describe('leaked leases', () => {
  it('are released after their pod was deleted, even without a DEL', async () => {
    const scene = await sceneWithPod();
    scene.cluster.deletePods();
    scene.agent.seePods();
    await scene.pass(COLLECT_AFTER_MS / 2);
    expect(scene.held).to.have.length(1);
    await looks(scene);
    expect(scene.held).to.deep.equal([]);
    expect(await scene.agent.metric('holdfast_agent_leases_swept_total')).to.equal(1);
  });

  const ends: { name: string; pod: Pod }[] = [
    { name: 'has ended', pod: podOf('web', { status: { phase: 'Succeeded' } }) },
    { name: 'has failed', pod: podOf('web', { status: { phase: 'Failed' } }) },
    {
      name: 'was replaced by another pod of the same name',
      pod: podOf('web', { metadata: { name: 'web', namespace: 'apps', uid: 'other' } }),
    },
  ];
  for (const { name, pod } of ends) {
    it(`are released if the pod ${name}`, async () => {
      const scene = await sceneWithPod();
      scene.cluster.setPod(pod);
      scene.agent.seePods();
      await looks(scene);
      expect(scene.held).to.deep.equal([]);
    });
  }

  it('are released after a restart of the node, too', async () => {
    const scene = await sceneWithPod();
    scene.cluster.deletePods();
    scene.start().catchUp();
    await looks(scene);
    expect(scene.held).to.deep.equal([]);
  });

  describe('of a pod that was deleted by force', () => {
    const KEPT = 'holdfast_agent_leases_kept';
    let scene: LeaseAgentWorld;

    /** While the kubelet is down or has no connection, the containers run. */
    beforeEach(async () => {
      scene = await sceneWithPod();
      scene.sandboxes.existing.add('web-c1');
      scene.cluster.deletePods();
      scene.agent.seePods();
    });

    it('are kept while its sandbox exists, without a request, and then released', async () => {
      await looks(scene);
      expect(scene.held).to.have.length(1);
      expect(await scene.agent.metric(KEPT)).to.equal(1);
      expect(scene.requests()).to.deep.equal([]);
      scene.sandboxes.existing.clear();
      await scene.pass(COLLECT_AFTER_MS / 2);
      expect(scene.held).to.have.length(1);
      await looks(scene);
      expect(scene.held).to.deep.equal([]);
      expect(await scene.agent.metric(KEPT)).to.equal(0);
    });

    it('are kept by the next process of the agent', async () => {
      scene.start().catchUp();
      await looks(scene);
      expect(scene.held).to.have.length(1);
    });

    it('are kept if it has ended according to its status, which users may write', async () => {
      scene.cluster.setPod(podOf('web', { status: { phase: 'Failed' } }));
      scene.agent.seePods();
      await looks(scene);
      expect(scene.held).to.have.length(1);
    });

    it('are kept only for the sandbox that exists', async () => {
      const [kept] = scene.held;
      await scene.add({ pod: 'other' });
      await looks(scene);
      expect(scene.held).to.deep.equal([kept]);
    });

    it('are released if only an earlier sandbox of the pod exists', async () => {
      await scene.add({ container: 'web-c2' });
      await looks(scene);
      expect(scene.held).to.deep.equal([]);
    });
  });

  it('are not assumed for a pod that is not cached yet', async () => {
    const scene = await sceneWithPod();
    scene.agent.pods.known.clear();
    await looks(scene);
    expect(scene.requests()).to.include('GET web');
    expect(scene.held).to.have.length(1);
  });

  it('are kept while a cache is empty or the API server is not available, and the time starts again', async () => {
    const scene = await sceneWithPod();
    scene.cluster.deletePods();
    scene.agent.pods.known.clear();
    scene.agent.pods.hasSynced = false;
    await looks(scene);
    expect(scene.requests()).to.deep.equal([]);
    scene.agent.api.before = () => UNSENT;
    scene.agent.seePods();
    await looks(scene);
    expect(scene.held).to.have.length(1);
    scene.fail();
    await looks(scene);
    expect(scene.held).to.deep.equal([]);
  });

  it('are released even if more leases than a round checks are of pods that cannot be read', async () => {
    const scene = new LeaseAgentWorld(POOL);
    for (let n = 0; n < 101; n++) await scene.add({ pod: n < 100 ? `unreadable${n}` : 'web' });
    scene.cluster.deletePods();
    scene.follow();
    const overloaded = { error: new TransportError('deadline', 'no answer in time'), applied: false };
    scene.agent.api.before = ({ path }) => (path.includes('/pods/unreadable') ? overloaded : undefined);
    await looks(scene);
    expect(scene.held).to.have.length(100);
  });

  it('are kept if they have moved to a new sandbox meanwhile', async () => {
    const scene = await sceneWithPod();
    scene.agent.pods.known.clear();
    await scene.pass(COLLECT_AFTER_MS / 2);
    await scene.add({ container: 'c2' });
    scene.requests();
    await scene.pass(COLLECT_AFTER_MS / 2);
    expect(scene.requests()).to.deep.equal([]);
    expect(scene.held).to.have.length(1);
  });

  it('are checked again from the start if another writer has changed them', async () => {
    const scene = await sceneWithPod();
    scene.cluster.deletePods();
    scene.agent.seePods();
    await scene.pass(COLLECT_AFTER_MS / 2);
    scene.cluster.server.tracker.put(ADDRESS_LEASES, scene.cluster.held()[0]!);
    await scene.pass(COLLECT_AFTER_MS / 2);
    await scene.pass(COLLECT_AFTER_MS / 2);
    expect(scene.requests().map((text) => text.split(' ')[0])).to.deep.equal(['GET', 'PATCH', 'GET']);
    expect(scene.held).to.have.length(1);
    await looks(scene);
    expect(scene.held).to.deep.equal([]);
  });

  it('are never assumed for claims', async () => {
    const scene = await sceneWithPod();
    await scene.leaseTo(OTHER, '10.0.0.9');
    Object.assign(scene.lease('10.0.0.9')!.spec, { node: 'n1' });
    scene.start().catchUp();
    await looks(scene);
    expect(scene.held).to.include('10.0.0.9');
  });

  it('are forgotten if they were deleted since', async () => {
    const scene = new LeaseAgentWorld(POOL);
    const [address = ''] = await scene.add();
    scene.cluster.server.tracker.remove(ADDRESS_LEASES, { name: `blue.${address.replaceAll('.', '-')}` });
    expect(await scene.agent.metric('holdfast_agent_leases_held')).to.equal(1);
    await looks(scene);
    expect(await scene.agent.metric('holdfast_agent_leases_held')).to.equal(0);
  });
});

describe('GC of a network', () => {
  async function collect(scene: LeaseAgentWorld, ...valid: string[]): Promise<void> {
    await scene.agent.leases.collect('blue', new Set(valid), callOf());
  }

  it('releases the leases of this network and node whose sandboxes do not exist any more', async () => {
    const scene = new LeaseAgentWorld(POOL, GREEN);
    const kept = await scene.add({ pod: 'kept' });
    const green = await scene.add({ pod: 'green' }, GREEN);
    await scene.add({ pod: 'gone' });
    await scene.add({ pod: 'kept', interface: 'net2' });
    await scene.leaseTo(OTHER, '10.0.0.9');
    scene.follow();
    await collect(scene, 'kept-c1 net1');
    expect(scene.held).to.deep.equal([...kept, ...green, '10.0.0.9'].sort());
  });

  it('continues after one release has failed, and returns the error', async () => {
    const scene = new LeaseAgentWorld(POOL);
    for (const pod of ['a', 'b', 'c']) await scene.add({ pod });
    scene.fail(UNSENT);
    let failure: unknown;
    await collect(scene).catch((error: unknown) => (failure = error));
    expect(failure).to.equal(UNSENT.error);
    expect(scene.held).to.have.length(1);
  });

  it('fails with code 11 while the agent starts', async () => {
    const scene = new LeaseAgentWorld(POOL);
    await scene.add();
    scene.start();
    let failure: unknown;
    await collect(scene).catch((error: unknown) => (failure = error));
    expect(failure).to.include({ code: 11 });
    expect(scene.held).to.have.length(1);
  });
});

describe('the address of a static pod', () => {
  /** Starts a static pod with an address. The runtime knows it by the UID that the kubelet gave it. */
  async function sceneWithStaticPod(): Promise<LeaseAgentWorld> {
    const scene = new LeaseAgentWorld(POOL);
    scene.cluster.setPod(mirrorPod('mirror-1'));
    await scene.add({ uid: 'mirror-1', staticUid: STATIC_UID });
    scene.follow();
    await scene.pass(COLLECT_AFTER_MS);
    return scene;
  }

  it('is kept when its mirror pod is recreated', async () => {
    const scene = await sceneWithStaticPod();
    scene.cluster.setPod(mirrorPod('mirror-2'));
    scene.agent.seePods();
    await looks(scene);
    expect(scene.cluster.held().map(({ spec }) => spec.owner?.uid)).to.deep.equal([STATIC_UID]);
    scene.requests();
    await scene.add({ uid: 'mirror-2', staticUid: STATIC_UID });
    expect(scene.held).to.have.length(1);
  });

  const ends: { name: string; pods: Pod[] }[] = [
    { name: 'its mirror pod was deleted for good', pods: [] },
    { name: 'its manifest has changed', pods: [mirrorPod('mirror-2', { mirrored: 'other' })] },
    { name: 'a pod of another name claims to be its mirror pod', pods: [mirrorPod('u', { name: 'forged' })] },
    { name: 'a pod in another namespace claims to be its mirror pod', pods: [mirrorPod('u', { namespace: 'evil' })] },
    {
      name: 'the kubelet did not create the pod that claims to be its mirror pod',
      pods: [mirrorPod('u', { controller: { kind: 'VirtualMachineInstance' } })],
    },
  ];
  for (const { name, pods } of ends) {
    it(`is released if ${name}`, async () => {
      const scene = await sceneWithStaticPod();
      scene.cluster.deletePods();
      for (const pod of pods) scene.cluster.setPod(pod);
      scene.agent.seePods();
      await looks(scene);
      expect(scene.held).to.deep.equal([]);
    });
  }

  it('is not given to a pod of another name with the same runtime UID', async () => {
    const scene = await sceneWithStaticPod();
    const [before] = scene.held;
    const [got] = await scene.add({ pod: 'other', staticUid: STATIC_UID });
    expect(got).not.to.equal(before);
    expect(scene.held).to.have.length(2);
  });
});
