import { expect } from 'chai';
import { REQUESTED_ADDRESSES_ANNOTATION } from '../../api/names.js';
import { podInterfaceName } from '../../api/pod.js';
import { bareAddress } from '../../test/bare-address.js';
import { describeStory } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { VmCopies } from '../../bed/story/vms/vm-copies.js';
import { VmTemplates } from '../../bed/story/vms/vm-templates.js';

const DATA = podInterfaceName('data');

const annotationsFor = (address: string) => ({ [REQUESTED_ADDRESSES_ANNOTATION]: JSON.stringify({ data: [address] }) });

/** Removes all annotations of the template. */
const withdrawRequest = (story: Story, name: string) =>
  story.change(name, ({ spec }) => delete spec.template.metadata?.annotations);

describeStory('A VM that KubeVirt copies', (story) => {
  const copies = () => new VmCopies(story().client, story().namespace);

  it('keeps claim and address when its snapshot is restored in place, and a new VM from the snapshot gets its own', async () => {
    await story().addresses.createNetwork('blue', ['10.76.0.0/24']);
    await story().runVm('vm1', { data: 'blue' });
    const claim = await story().waitForClaim('vm1.data');
    const mine = await story().addresses.waitForIPs('vm1.data');
    await copies().snapshot('vm1', 'monday');
    await story().stop('vm1');

    await copies().restore('monday', 'vm1');
    await story().start('vm1');
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(claim.metadata.uid);
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(mine);

    await copies().restore('monday', 'vm2');
    await story().start('vm2');
    expect(await story().references('vm2')).to.deep.equal([{ [DATA]: 'vm2.data' }]);
    expect(await story().addresses.waitForIPs('vm2.data')).not.to.deep.equal(mine);
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(mine);
  });

  it('keeps the address that its clone requests too, and the clone starts with its own when the copied request is removed', async () => {
    await story().addresses.createNetwork('blue', ['10.76.1.0/24']);
    await story().runVm('vm1', { data: 'blue' }, { annotations: annotationsFor('10.76.1.50') });
    await story().addresses.waitForExactIPs('vm1.data', ['10.76.1.50/24']);

    await copies().clone('vm1', 'vm2');
    const { message } = await story().addresses.waitForRefusal('vm2.data', 'IPAddressConflict');
    expect(message).to.include(`10.76.1.50 is allocated to IPAMClaim ${story().namespace}/vm1.data, which requests it`);
    expect(message).to.include('VM vm2 is a copy of VM vm1, remove the network from the annotation');
    await story().waitForEvent('vm2', 'AddressesNotAllocated', /VM vm2 is a copy of VM vm1/);

    await story().requestStart('vm2');
    await story().migrations.waitForOneLauncher('vm2');
    await withdrawRequest(story(), 'vm2');
    await story().waitRunning('vm2');
    expect(await story().addresses.waitForIPs('vm2.data')).not.to.deep.equal(['10.76.1.50/24']);
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(['10.76.1.50/24']);
  });
});

describeStory('The VMs that KubeVirt makes from a template', (story) => {
  const templates = () => new VmTemplates(story().client, story().namespace);

  it('have a claim each in a VirtualMachinePool, and a VM that is scaled in frees its address', async () => {
    await story().addresses.createNetwork('blue', ['10.76.2.0/24']);
    await templates().createPool('pool', { data: 'blue' }, 2);
    await story().waitForClaims(['pool-0.data', 'pool-1.data']);
    await Promise.all(['pool-0', 'pool-1'].map((name) => story().waitRunning(name)));
    const both = await Promise.all(['pool-0.data', 'pool-1.data'].map((claim) => story().addresses.waitForIPs(claim)));
    expect(new Set(both.flat()).size).to.equal(2);

    await templates().scalePool('pool', 1);
    const [kept = ''] = await story().claims.waitForCount(1);
    const index = Number(/\d/.exec(kept)?.[0]);
    expect(await story().addresses.waitForIPs(kept)).to.deep.equal(both[index]);
    await story().addresses.waitHeld(both[index]!.map(bareAddress));
  });

  it('have claims and keep their addresses if an instance type and a preference define the rest of the VM', async () => {
    await story().addresses.createNetwork('blue', ['10.76.3.0/24']);
    await templates().createInstancetype('small');
    await templates().createPreference('linux');
    await templates().createTypedVm('vm1', { data: 'blue' }, { instancetype: 'small', preference: 'linux' });
    const vmi = await story().waitRunning('vm1');
    expect(vmi.metadata.annotations).to.include({ 'kubevirt.io/instancetype-name': 'small' });
    const mine = await story().addresses.waitForIPs('vm1.data');
    await story().restart('vm1');
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(mine);
  });
});
