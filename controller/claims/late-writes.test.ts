import { expect } from 'chai';
import { ClaimsModelCluster } from './testing/model/cluster.js';
import { applyOperation } from './testing/model/operations.js';

describe('the creation of a claim that gets no answer', () => {
  it('takes no interface from the claim that the VM has when it arrives', async () => {
    const cluster = new ClaimsModelCluster();
    const { world, controller } = cluster;
    const rename = async (config: 'persistent' | 'renamed') => {
      applyOperation(world, { do: 'edit NAD', nad: 'blue', config });
      await cluster.settle();
    };
    const run = async (running: boolean) => {
      applyOperation(world, { do: 'run VM', running });
      await cluster.settle();
    };
    applyOperation(world, { do: 'edit NAD', nad: 'blue', config: 'renamed' });
    applyOperation(world, { do: 'create VM', networks: { data: 'blue' }, running: false });
    controller.deliverAll();
    while (controller.late.length === 0) await controller.syncNext(undefined, { writes: 0, fate: 'late' });
    // the first name is taken by a claim for the other network, so the VM gets a claim with the second name
    await rename('persistent');
    await run(true);
    await rename('renamed');
    await run(false);
    await run(true);
    const uids = () => world.list('claims').map(({ metadata }) => metadata.uid);
    const before = uids();
    expect(before).to.have.length(1);

    cluster.arriveLate();
    expect(uids()).to.have.length(2);
    await cluster.settle();
    await run(false);
    await run(true);
    expect(uids()).to.deep.equal(before);
  });
});

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
