import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { describeStory } from '../../bed/story/describe.js';

const DATA = podInterfaceName('data');

describeStory('A claim of another owner', (story) => {
  it('blocks the VM and is not changed; an event of the VM says why, and the VM starts when the claim is gone', async () => {
    await story().network('blue');
    const foreign = await story().claims.createForeign('vm1.data', 'blue-net');
    await story().createVm('vm1', { data: 'blue' });
    const event = await story().waitForEvent('vm1', 'IPAMClaimConflict');
    expect(event.message).to.include(`${story().namespace}/vm1.data`).and.to.include('somebody-else');
    await story().waitForEvent('vm1', 'FailedCreate');
    expect((await story().waitForClaim('vm1.data')).metadata).to.deep.include({
      uid: foreign.metadata.uid,
      resourceVersion: foreign.metadata.resourceVersion,
    });

    await story().claims.remove('vm1.data');
    await story().waitRunning('vm1');
    expect((await story().waitForClaim('vm1.data')).metadata.uid).not.to.equal(foreign.metadata.uid);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);
  });

  it('is not given to a foreign VMI that has the name of a stopped VM', async () => {
    await story().network('blue');
    const vm = await story().createVm('vm1', { data: 'blue' }, { running: false });
    const claim = await story().waitForClaim('vm1.data');
    await story().createVmi('vm1', { data: 'blue' });
    await story().waitControllerIdle();
    const after = await story().waitForClaim('vm1.data');
    expect(after.metadata.uid).to.equal(claim.metadata.uid);
    expect(after.metadata.ownerReferences?.[0]?.uid).to.equal(vm.metadata.uid);
  });
});

describeStory('A claim that a user created before the VM', (story) => {
  it('is adopted if it is for the same network and has no owner', async () => {
    await story().network('blue');
    const made = await story().claims.createPlain('vm1.data', 'blue-net');
    const vm = await story().createVm('vm1', { data: 'blue' });
    const adopted = await story().claims.waitForOwner('vm1.data', 'VirtualMachine', vm.metadata.uid);
    expect(adopted.metadata.uid).to.equal(made.metadata.uid);
    expect(adopted.spec.interface).to.equal(DATA);
    await story().waitRunning('vm1');
    await story().deleteVm('vm1', 'Background');
    await story().waitForClaims([]);
  });
});

describeStory('A claim that a user deletes', (story) => {
  it('serves its running VM until it stops, and is replaced afterwards', async () => {
    await story().network('blue');
    await story().runVm('vm1', { data: 'blue' });
    const claim = await story().waitForClaim('vm1.data');
    await (await story().tenant()).deleteClaim('vm1.data');
    await story().migrate('vm1', 'Succeeded');
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(claim.metadata.uid);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);

    await story().stop('vm1');
    const successor = await story().claims.waitForSuccessor(claim);
    expect(successor.metadata.deletionTimestamp).to.equal(undefined);
    await story().start('vm1');
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);
  });

  it('is replaced at once if its VM is stopped, and the new claim requests the same addresses', async () => {
    await story().network('blue');
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    const claim = await story().waitForClaim('vm1.data');
    await story().claims.writeAddresses('vm1.data', ['10.0.0.5/24']);
    await story().claims.remove('vm1.data');
    const successor = await story().claims.waitForSuccessor(claim);
    expect(successor.metadata.annotations).to.include({ 'ipam.holdfast.dev/requested-addresses': '["10.0.0.5/24"]' });
  });
});

describeStory('A claim of kubevirt/ipam-extensions', (story) => {
  it('is adopted unchanged, and the VM is not changed', async () => {
    await story().network('blue', { persistent: false });
    const vm = await story().createVm('vm1', { data: 'blue' });
    const vmi = await story().waitRunning('vm1');
    const made = await story().claims.createAsIpamExtensions('vm1.data', 'blue-net', vm);
    await story().network('blue', { persistent: true });
    const taken = await story().claims.waitFor(
      'vm1.data',
      'to name its interface',
      (claim) => claim.spec.interface === DATA,
    );
    expect(taken.metadata.uid).to.equal(made.metadata.uid);
    expect(taken.metadata.finalizers).to.deep.equal(['kubevirt.io/persistent-ipam']);
    expect((await story().waitRunning('vm1')).metadata.uid).to.equal(vmi.metadata.uid);
    await story().deleteVm('vm1', 'Background');
    await story().waitForClaims([]);
  });
});
