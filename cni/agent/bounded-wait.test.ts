import { expect } from 'chai';
import { SelfAdvancingClock, worldWithVm } from './testing/agent-world.js';

describe('who waits for a claim', () => {
  it('says what he waited for when time is up', async () => {
    const world = worldWithVm();
    world.remove('ipamclaims', 'vms/vm1.data');
    const answer = await world.add(world.launcher(), 0, world.call(1_000));
    expect(answer).to.match(
      /^11 IPAMClaim vms.vm1.data of network element 0 .* does not exist yet; time is up: try again/,
    );
  });

  it('waits no longer once the pod is being deleted, whose end waits for the answer', async () => {
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
});
