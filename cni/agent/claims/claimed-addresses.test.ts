import { expect } from 'chai';
import { SelfAdvancingClock, worldWithVm } from '../testing/agent-world.js';

describe('the wait for a claim', () => {
  it('ends with the reason of the wait when the time is up', async () => {
    const world = worldWithVm();
    world.remove('ipamclaims', 'vms/vm1.data');
    const answer = await world.add(world.launcher(), 0, world.call(1_000));
    expect(answer).to.match(
      /^11 IPAMClaim vms.vm1.data of network element 0 .* does not exist yet; timeout: the kubelet retries/,
    );
  });

  it('ends when the pod is being deleted', async () => {
    const clock = new SelfAdvancingClock();
    const world = worldWithVm(clock);
    world.remove('ipamclaims', 'vms/vm1.data');
    const pod = world.launcher();
    let steps = 0;
    clock.onStep = () => {
      const metadata = { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:10Z' };
      if (++steps === 2) world.podInformer.set({ ...pod, metadata });
    };
    expect(await world.add(pod)).to.match(/^11 .* does not exist yet; the pod is being deleted/);
    expect(steps).to.equal(2);
  });

  it('begins with short waits again when the claim appears', async () => {
    const clock = new SelfAdvancingClock();
    const world = worldWithVm(clock);
    const [claim, before] = [world.claim(), clock.now()];
    world.remove('ipamclaims', 'vms/vm1.data');
    let appeared = Infinity;
    clock.onStep = () => {
      if (clock.now() > appeared) world.put('ipamclaims', claim);
      else if (clock.now() > before + 5_000) {
        appeared = clock.now();
        world.put('ipamclaims', { ...claim, status: {} });
      }
    };
    expect(await world.add(world.launcher())).to.equal('10.0.0.5/24');
    expect(clock.now() - appeared).to.be.within(1, 50);
  });
});
