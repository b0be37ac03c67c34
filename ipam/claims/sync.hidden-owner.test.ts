import { expect } from 'chai';
import { ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';

describe('syncing a claim whose owner pod no cache has', () => {
  let scene: ClaimSyncScenario;
  const ownerOf = () => scene.claim('a').status?.ownerPod?.name;
  /** Everything but pods arrives, as if they lacked the label by which pods are watched. */
  const syncWithoutPods = () => {
    for (const kind of ['addresspools', 'addressleases', 'ipamclaims'] as const) scene.process.deliver(kind, Infinity);
    return scene.syncWithoutNews('a');
  };

  beforeEach(async () => {
    scene = new ClaimSyncScenario();
    scene.create('a');
    await scene.cluster.settle();
    scene.cluster.operate({ do: 'startPod', name: 'a' });
    scene.cluster.world.update('ipamclaims', 'vms/a', (claim) => {
      claim.status!.ownerPod = { name: 'a' };
    });
  });

  it('keeps the owner while a live read shows that it runs, and reads it again later', async () => {
    const { result, requests } = await syncWithoutPods();
    expect(requests).to.deep.equal(['GET pods a']);
    expect(ownerOf()).to.equal('a');
    expect(result).to.deep.equal({ requeueAfterMs: 15_000 });
  });

  for (const phase of ['Succeeded', 'Failed']) {
    it(`removes the name of the owner once it is ${phase}`, async () => {
      scene.cluster.world.update('pods', 'vms/a', (pod) => {
        pod.status = { phase };
      });
      await syncWithoutPods();
      expect(ownerOf()).to.equal(undefined);
    });
  }

  it('removes the name of the owner once it is gone, and reads nothing later', async () => {
    scene.cluster.operate({ do: 'endPod', name: 'a' });
    const { result, requests } = await syncWithoutPods();
    expect(requests).to.deep.equal(['GET pods a', 'PATCH ipamclaims a status']);
    expect(ownerOf()).to.equal(undefined);
    expect(result).to.equal(undefined);
  });

  it('removes the name of a pod that does not refer to the claim', async () => {
    scene.cluster.world.update('pods', 'vms/a', (pod) => {
      pod.metadata.annotations = {};
    });
    await syncWithoutPods();
    expect(ownerOf()).to.equal(undefined);
  });

  it('keeps the owner if it cannot be read', async () => {
    scene.failRequest(0, { error: new Error('no answer'), applied: false });
    await scene.process.syncFromQueue('vms/a');
    expect(ownerOf()).to.equal('a');
  });

  it('reads nothing while the cache has the owner', async () => {
    const { requests } = await scene.sync('a');
    expect(requests).to.deep.equal([]);
  });
});
