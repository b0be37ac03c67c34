import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { describeStory } from '../../bed/story/describe.js';
import { environment } from '../../bed/story/hooks.js';

describeStory('A VM with a persistent network', (story) => {
  beforeEach(() => story().network('blue'));

  it('has a claim with its owner before it first runs', async () => {
    const vm = await story().createVm('vm1', { data: 'blue' }, { running: false });
    const claim = await story().waitForClaim('vm1.data');

    expect(claim.spec).to.deep.equal({ network: 'blue-net', interface: podInterfaceName('data') });
    expect(claim.metadata.finalizers).to.deep.equal(['kubevirt.io/persistent-ipam']);
    expect(claim.metadata.labels).to.include({ 'kubevirt.io/vm': 'vm1' });
    expect(claim.metadata.ownerReferences).to.deep.equal([
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        name: 'vm1',
        uid: vm.metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
  });

  it('has the same claim when a killed launcher is replaced', async () => {
    const before = await story().runVm('vm1', { data: 'blue' });
    const claim = await story().waitForClaim('vm1.data');
    await story().killLauncher('vm1');
    await story().waitReplaced('vm1', before);
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(claim.metadata.uid);
    expect(await story().references('vm1')).to.deep.equal([{ [podInterfaceName('data')]: 'vm1.data' }]);
  });

  it('starts again if its VMI is deleted with orphan propagation, although the garbage collector cannot orphan the launcher', async () => {
    const before = await story().runVm('vm1', { data: 'blue' });
    const claim = await story().waitForClaim('vm1.data');
    await story().deleteVmi('vm1', 'Orphan');
    await story().waitReplaced('vm1', before);
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(claim.metadata.uid);
  });
});

describeStory('A live migration', (story) => {
  beforeEach(() => story().network('blue'));

  it('has the same claim on source and target, and afterwards on the target alone', async () => {
    await story().runVm('vm1', { data: 'blue' });
    const claim = await story().waitForClaim('vm1.data');
    const letGo = environment().bed?.switches.set({ migration: 'hold' }, { namespace: story().namespace });
    await story().migrate('vm1', 'Succeeded', async () => {
      const both = await story().migrations.waitForBothReferences('vm1');
      letGo?.();
      expect(both).to.deep.equal([
        { [podInterfaceName('data')]: 'vm1.data' },
        { [podInterfaceName('data')]: 'vm1.data' },
      ]);
    });
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(claim.metadata.uid);
    expect(await story().references('vm1')).to.deep.equal([{ [podInterfaceName('data')]: 'vm1.data' }]);
  });

  it('after an eviction keeps the claim on another node', async () => {
    const before = await story().runVm('vm1', { data: 'blue' }, { evictionStrategy: 'LiveMigrate' });
    const claim = await story().waitForClaim('vm1.data');
    await story().migrations.evict('vm1');
    await story().migrations.waitMovedFrom('vm1', before);
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(claim.metadata.uid);
  });
});

describeStory('Deleting a VM', (story) => {
  beforeEach(() => story().network('blue'));

  for (const cascade of ['Background', 'Foreground'] as const) {
    it(`with ${cascade.toLowerCase()} propagation deletes its claims when the guest has shut down`, async () => {
      await story().runVm('vm1', { data: 'blue', second: 'blue' });
      await story().waitForClaims(['vm1.data', 'vm1.second']);
      const letGo = environment().bed?.switches.set({ holdTermination: true }, story().ref('vm1'));
      await story().deleteVm('vm1', cascade);
      if (letGo !== undefined) {
        await story().waitBeingDeleted('vm1');
        await story().waitControllerIdle();
        expect(await story().claimNames()).to.deep.equal(['vm1.data', 'vm1.second']);
        letGo();
      }
      await story().waitGone('vm1');
      await story().waitForClaims([]);
    });
  }

  it('while it is stopped, with orphan propagation, releases its addresses at once', async () => {
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    await story().waitForClaim('vm1.data');
    await story().deleteVm('vm1', 'Orphan');
    await story().waitForClaims([]);
  });

  it('with orphan propagation leaves the claim with the running VMI until that ends, and a VM that adopts the VMI gets it', async () => {
    const vmi = await story().runVm('vm1', { data: 'blue' });
    const claim = await story().waitForClaim('vm1.data');

    await story().deleteVm('vm1', 'Orphan');
    const orphan = await story().claims.waitForOwner('vm1.data', 'VirtualMachineInstance', vmi.metadata.uid);
    expect(orphan.metadata.uid).to.equal(claim.metadata.uid);

    const successor = await story().createVm('vm1', { data: 'blue' });
    const adopted = await story().claims.waitForOwner('vm1.data', 'VirtualMachine', successor.metadata.uid);
    expect(adopted.metadata.uid).to.equal(claim.metadata.uid);

    await story().deleteVm('vm1', 'Orphan');
    await story().claims.waitForOwner('vm1.data', 'VirtualMachineInstance', vmi.metadata.uid);
    await story().deleteVmi('vm1');
    await story().waitForClaims([]);
  });

  it('and creating one with the same name creates a new claim', async () => {
    await story().runVm('vm1', { data: 'blue' });
    const claim = await story().waitForClaim('vm1.data');
    await story().deleteVm('vm1', 'Background');
    await story().waitVmObjectGone('vm1');
    const successor = await story().createVm('vm1', { data: 'blue' });
    const fresh = await story().claims.waitForOwner('vm1.data', 'VirtualMachine', successor.metadata.uid);
    expect(fresh.metadata.uid).not.to.equal(claim.metadata.uid);
    await story().waitRunning('vm1');
    expect(await story().references('vm1')).to.deep.equal([{ [podInterfaceName('data')]: 'vm1.data' }]);
  });

  it('and creating one with the same name waits while the old claim has another finalizer, and says so', async () => {
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    const claim = await story().waitForClaim('vm1.data');
    await story().claims.setFinalizer('vm1.data', 'example.org/keep', true);
    await story().deleteVm('vm1', 'Background');
    await story().waitVmObjectGone('vm1');
    const successor = await story().createVm('vm1', { data: 'blue' });
    const event = await story().waitForEvent('vm1', 'IPAMClaimOfPredecessor');
    expect(event.message).to.include(`${story().namespace}/vm1.data`);
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(claim.metadata.uid);

    await story().claims.setFinalizer('vm1.data', 'example.org/keep', false);
    await story().claims.waitForOwner('vm1.data', 'VirtualMachine', successor.metadata.uid);
    await story().waitRunning('vm1');
    expect(await story().references('vm1')).to.deep.equal([{ [podInterfaceName('data')]: 'vm1.data' }]);
  });

  it('does not delete the claim of a VMI that a foreign finalizer keeps', async () => {
    await story().runVm('vm1', { data: 'blue' });
    await story().setVmiFinalizer('vm1', 'example.org/keep', true);
    await story().deleteVm('vm1', 'Background');
    await story().waitLaunchersGone('vm1');
    await story().waitControllerIdle();
    expect(await story().claimNames()).to.deep.equal(['vm1.data']);
    await story().setVmiFinalizer('vm1', 'example.org/keep', false);
    await story().waitGone('vm1');
    await story().waitForClaims([]);
  });
});

describeStory('A VMI without a VM', (story) => {
  it('has its own claim, which is deleted with it', async () => {
    await story().network('blue');
    const cascades = { first: 'Background', second: 'Foreground' } as const;
    for (const [name, cascade] of Object.entries(cascades)) {
      const vmi = await story().createVmi(name, { data: 'blue' });
      await story().waitRunning(name);
      const claim = await story().claims.waitForOwner(`${name}.data`, 'VirtualMachineInstance', vmi.metadata.uid);
      expect(claim.metadata.ownerReferences?.[0]?.blockOwnerDeletion).to.equal(false);
      expect(await story().references(name)).to.deep.equal([{ [podInterfaceName('data')]: `${name}.data` }]);
      await story().deleteVmi(name, cascade);
    }
    await story().waitForClaims([]);
  });
});
