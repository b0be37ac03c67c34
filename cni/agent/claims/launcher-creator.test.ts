import { expect } from 'chai';
import { LAUNCHER_CREATOR } from '../../../api/names.js';
import { type AgentWorld, worldWithVm } from '../testing/agent-world.js';

const GRANTED = '10.0.0.5/24';

describe('claim authorization by the creator of a launcher', () => {
  const other = 'system:serviceaccount:vms:kubevirt-controller';
  const launcherOf = (world: AgentWorld, creator: string) => {
    const pod = world.launcher();
    pod.metadata.annotations = { ...pod.metadata.annotations, [LAUNCHER_CREATOR]: creator };
    return world.addPod(pod);
  };

  it("delays the launcher while KubeVirt's service account is unknown", async () => {
    const world = worldWithVm();
    world.kubevirt = { problem: 'kubevirtNamespace is wrong' };
    expect(await world.add(world.launcher())).to.match(
      /^11 pod vms.virt-launcher-vm1-a may not use an IPAMClaim: kubevirtNamespace is wrong/,
    );
  });

  it('gives a launcher without a claim its own address even if the creator is unknown', async () => {
    const world = worldWithVm();
    world.kubevirt = { problem: 'kubevirtNamespace is wrong' };
    world.addNad('blue', false);
    world.remove('ipamclaims', 'vms/vm1.data');
    expect(await world.add(world.launcher())).to.equal('none');
  });

  it('refuses a launcher that another user created, even if KubeVirt becomes known later', async () => {
    const world = worldWithVm();
    expect(await world.add(launcherOf(world, other))).to.match(/^100 .*it was created by .*vms:kubevirt-controller/);
  });

  it('authorizes a launcher that KubeVirt created', async () => {
    const world = worldWithVm();
    expect(await world.add(launcherOf(world, world.kubevirt.username ?? ''))).to.equal(GRANTED);
  });

  it('ignores a launcher that another user created when it looks for other users of the claim', async () => {
    const world = worldWithVm();
    launcherOf(world, other);
    world.claim().status!.ownerPod = { name: 'virt-launcher-vm1-a' };
    expect(await world.add(world.launcher('vm1', { name: 'b' }))).to.equal(GRANTED);
  });

  it("delays a second launcher if KubeVirt's service account becomes unknown after authorization", async () => {
    const world = worldWithVm();
    world.launcher('vm1', { node: 'node2', phase: 'Running' });
    world.claim().status!.ownerPod = { name: 'virt-launcher-vm1-a' };
    const pod = world.launcher('vm1', { name: 'b' });
    const states = [world.kubevirt];
    const unknown = { problem: 'kubevirtNamespace is wrong' };
    Object.defineProperty(world, 'kubevirt', { get: () => states.shift() ?? unknown });
    expect(await world.add(pod)).to.match(/^11 IPAMClaim vms.vm1.data cannot be used: kubevirtNamespace is wrong/);
  });
});
