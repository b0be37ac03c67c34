import { expect } from 'chai';
import { ClaimsModelCluster } from './testing/model/cluster.js';
import { applyOperation } from './testing/model/operations.js';

describe('the removal of a finalizer that gets no answer', () => {
  it('does not remove a claim that a new launcher uses when it arrives', async () => {
    const cluster = new ClaimsModelCluster();
    const { world, kubevirt, controller } = cluster;
    applyOperation(world, { do: 'create VM', networks: { data: 'blue' }, running: false });
    await cluster.settle();
    const uids = () => world.list('claims').map(({ metadata }) => metadata.uid);
    const [uid] = uids();
    applyOperation(world, { do: 'remove from spec', network: 'data' });
    controller.deliverAll();
    await controller.syncNext(undefined, { writes: 1, fate: 'late' });
    expect(controller.late.map(({ method }) => method)).to.deep.equal(['PATCH']);

    applyOperation(world, { do: 'plug', network: 'data', nad: 'blue' });
    applyOperation(world, { do: 'run VM', running: true });
    for (const step of ['createVmi', 'createLauncher', 'attach'] as const) kubevirt.steps[step]();
    expect(kubevirt.launchers.podsOfClaim(uid!)).to.have.length(1);
    controller.arriveLate();
    cluster.check();
    await cluster.settle();
    expect(uids()).to.deep.equal([uid]);
  });
});
