import { expect } from 'chai';
import { LAUNCHER_CREATOR } from '../../../api/names.js';
import { type AgentWorld, worldWithVm } from '../testing/agent-world.js';

const GRANTED = '10.0.0.5/24';

describe('the entitlement of a launcher whose creator is in doubt', () => {
  const elsewhere = 'system:serviceaccount:vms:kubevirt-controller';
  const launcherOf = (world: AgentWorld, creator: string) => {
    const pod = world.launcher();
    pod.metadata.annotations = { ...pod.metadata.annotations, [LAUNCHER_CREATOR]: creator };
    return world.addPod(pod);
  };

  it('has to wait while nobody knows who creates launchers', async () => {
    const world = worldWithVm();
    world.kubevirt = { problem: 'kubevirtNamespace is wrong' };
    expect(await world.add(world.launcher())).to.match(
      /^11 pod vms.virt-launcher-vm1-a gets no address of an IPAMClaim: kubevirtNamespace is wrong/,
    );
  });

  it('is its own if it has no claim, whoever creates launchers', async () => {
    const world = worldWithVm();
    world.kubevirt = { problem: 'kubevirtNamespace is wrong' };
    world.addNad('blue', false);
    world.remove('ipamclaims', 'vms/vm1.data');
    expect(await world.add(world.launcher())).to.equal('none');
  });

  it('is refused if somebody else created it, after KubeVirt is known as well', async () => {
    const world = worldWithVm();
    expect(await world.add(launcherOf(world, elsewhere))).to.match(
      /^100 .*it was created by .*vms:kubevirt-controller/,
    );
  });

  it('is the claim of its VM if KubeVirt created it', async () => {
    const world = worldWithVm();
    expect(await world.add(launcherOf(world, world.kubevirt.username ?? ''))).to.equal(GRANTED);
  });

  it('is not kept from the VM by a launcher that somebody else created', async () => {
    const world = worldWithVm();
    launcherOf(world, elsewhere);
    world.claim().status!.ownerPod = { name: 'virt-launcher-vm1-a' };
    expect(await world.add(world.launcher('vm1', { name: 'b' }))).to.equal(GRANTED);
  });

  it('has to wait beside another launcher if KubeVirt becomes unknown after the pod was judged', async () => {
    const world = worldWithVm();
    world.launcher('vm1', { node: 'node2', phase: 'Running' });
    world.claim().status!.ownerPod = { name: 'virt-launcher-vm1-a' };
    const pod = world.launcher('vm1', { name: 'b' });
    const states = [world.kubevirt];
    const unknown = { problem: 'kubevirtNamespace is wrong' };
    Object.defineProperty(world, 'kubevirt', { get: () => states.shift() ?? unknown });
    expect(await world.add(pod)).to.match(/^11 IPAMClaim vms.vm1.data gives no addresses: kubevirtNamespace is wrong/);
  });
});
