import { expect } from 'chai';
import type { Pod } from '../../../api/pod.js';
import { parseAddress } from '../../../ipam/core/address.js';
import type { AgentWorld } from '../testing/agent-world.js';
import { worldWithVm } from '../testing/agent-world.js';
import { makeClaim } from '../../../test/kubevirt-objects.js';

const FIVE = [parseAddress('10.0.0.5')];

async function attached(): Promise<{ world: AgentWorld; pod: Pod }> {
  const world = worldWithVm();
  const pod = world.launcher();
  expect(await world.add(pod)).to.equal('10.0.0.5/24');
  world.reads.length = 0;
  return { world, pod };
}

/** What a runtime says of the sandbox alone. */
function sandbox(world: AgentWorld, pod: Pod) {
  const { containerId, interfaceName } = world.attachment(pod);
  return { containerId, interfaceName };
}

describe('the check of addresses that a sandbox has by a claim', () => {
  it('finds them held by one read of each lease', async () => {
    const { world, pod } = await attached();
    expect(await world.claimed.check(sandbox(world, pod), FIVE, world.call())).to.equal('held');
    expect(world.reads).to.deep.equal(['addressleases blue.10-0-0-5']);
  });

  const losses: { name: string; lose: (world: AgentWorld) => void }[] = [
    { name: 'gone', lose: (world) => world.remove('addressleases', 'blue.10-0-0-5') },
    { name: 'that of another claim', lose: (world) => void world.addLease('10.0.0.5/24', makeClaim('vm2', 'data')) },
    {
      name: 'released',
      lose: (world) => {
        world.addLease('10.0.0.5/24', world.claim()).spec.releasedAt = '2026-01-01T00:00:00Z';
      },
    },
  ];
  for (const { name, lose } of losses) {
    it(`finds them lost where the lease is ${name}`, async () => {
      const { world, pod } = await attached();
      lose(world);
      expect(await world.claimed.check(sandbox(world, pod), FIVE, world.call())).to.equal('lost');
    });
  }

  it('finds an address lost that was never given out', async () => {
    const { world, pod } = await attached();
    const answer = await world.claimed.check(sandbox(world, pod), [parseAddress('10.0.0.6')], world.call());
    expect(answer).to.equal('lost');
  });

  it('knows nothing of a sandbox that it gave nothing', async () => {
    const { world, pod } = await attached();
    const other = { ...sandbox(world, pod), containerId: 'c2' };
    expect(await world.claimed.check(other, FIVE, world.call())).to.equal('unknown');
  });

  it('finds them held after a start of the agent, where the pod is told', async () => {
    const world = worldWithVm();
    const attachment = world.attachment(world.launcher());
    expect(await world.claimed.check(attachment, FIVE, world.call())).to.equal('held');
    expect(await world.claimed.check(attachment, [parseAddress('10.0.0.6')], world.call())).to.equal('lost');
  });

  it('knows nothing of a pod without a claim', async () => {
    const world = worldWithVm();
    const attachment = world.attachment(world.tenantPod());
    expect(await world.claimed.check(attachment, FIVE, world.call())).to.equal('unknown');
  });

  it('knows nothing while the API server is away', async () => {
    const { world, pod } = await attached();
    world.disconnect();
    expect(await world.claimed.check(sandbox(world, pod), FIVE, world.call())).to.equal('unknown');
  });

  it('forgets the sandboxes of a pod that is gone', async () => {
    const { world, pod } = await attached();
    world.podInformer.delete(`vms/${pod.metadata.name}`);
    expect(await world.claimed.check(sandbox(world, pod), FIVE, world.call())).to.equal('unknown');
  });
});
