import { expect } from 'chai';
import { AgentWorld, SelfAdvancingClock, worldWithVm } from '../testing/agent-world.js';
import { makeClaim } from '../../../test/objects/kubevirt-objects.js';
import { claimOfIpamExtensions, vmReference } from '../../../test/objects/workload-objects.js';

describe('a launcher whose claim is missing, deleted or without owner', () => {
  it('waits until a claim without owner is adopted', async () => {
    const clock = new SelfAdvancingClock();
    const world = worldWithVm(clock);
    const owned = world.claim();
    const orphan = world.addClaim(makeClaim('vm1', 'data', { ownerUid: null }), ['10.0.0.5/24']);
    clock.onStep = () => {
      world.put('ipamclaims', { ...orphan, metadata: owned.metadata });
    };
    expect(await world.add(world.launcher())).to.equal('10.0.0.5/24');
  });

  it('gets no address from a claim that is not adopted in time', async () => {
    const world = worldWithVm();
    world.addClaim(makeClaim('vm1', 'data', { ownerUid: null }), ['10.0.0.5/24']);
    expect(await world.add(world.launcher(), 0, world.call(1_000))).to.match(
      /^11 IPAMClaim vms.vm1.data has no owner and is for network "blue": it is about to be adopted; timeout/,
    );
  });

  it('keeps using a claim that a user has deleted while the VM runs', async () => {
    const world = worldWithVm();
    world.addClaim(makeClaim('vm1', 'data', { terminating: true }), ['10.0.0.5/24']);
    expect(await world.add(world.launcher())).to.equal('10.0.0.5/24');
  });

  it('gets the claim of its VM if its reference names a missing claim', async () => {
    const world = worldWithVm();
    expect(await world.add(world.launcher('vm1', { references: { data: 'nothing' } }))).to.equal('10.0.0.5/24');
  });

  it('gets the claim that it refers to, of two for one network', async () => {
    const world = worldWithVm();
    world.addClaim(makeClaim('vm1', 'data', { name: 'vm1.data-old' }), ['10.0.0.6/24']);
    const pod = world.launcher('vm1', { references: { data: 'vm1.data-old' } });
    expect(await world.add(pod)).to.equal('10.0.0.6/24');
  });

  it('gets the claim of Holdfast even if it refers to the claim that kubevirt/ipam-extensions created beside it', async () => {
    const world = new AgentWorld();
    const networks = { Data: 'blue' };
    world.addVm('vm1', networks);
    const beside = { name: 'vm1.data', network: 'blue', owner: vmReference('vm1-vm-uid') };
    world.addClaim(claimOfIpamExtensions(beside), ['10.0.0.6/24']);
    const pod = world.launcher('vm1', { networks, references: { Data: 'vm1.data' } });
    expect(await world.add(pod)).to.equal('10.0.0.5/24');
  });

  it('gets the claim that was created for its NAD even if the NAD is missing', async () => {
    const world = worldWithVm();
    world.removeNad('blue');
    expect(await world.add(world.launcher())).to.equal('10.0.0.5/24');
  });

  it('has to wait if it has no claim and its NAD is missing, because the NAD may allow claims', async () => {
    const world = worldWithVm();
    world.removeNad('blue');
    world.remove('ipamclaims', 'vms/vm1.data');
    expect(await world.add(world.launcher(), 0, world.call(1_000))).to.match(
      /^11 NetworkAttachmentDefinition vms.blue does not exist: create it/,
    );
  });

  it('has to wait while the API server cannot say whether its claim exists', async () => {
    const world = new AgentWorld();
    world.addVm();
    world.before = (read) => {
      if (read.startsWith('ipamclaims')) throw new Error('broken');
    };
    expect(await world.add(world.launcher())).to.match(/^11 .*broken/);
  });
});
