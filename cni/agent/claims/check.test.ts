import { expect } from 'chai';
import type { Pod } from '../../../api/pod.js';
import { parseAddress } from '../../../addressing/address/address.js';
import { type AgentWorld, worldWithVm } from '../testing/agent-world.js';
import { makeClaim } from '../../../test/objects/kubevirt-objects.js';

const FIVE = [parseAddress('10.0.0.5')];

async function attached(): Promise<{ world: AgentWorld; pod: Pod }> {
  const world = worldWithVm();
  const pod = world.launcher();
  expect(await world.add(pod)).to.equal('10.0.0.5/24');
  world.reads.length = 0;
  return { world, pod };
}

/** The part of the attachment that a runtime knows. */
function sandbox(world: AgentWorld, pod: Pod) {
  const { containerId, interfaceName } = world.attachment(pod);
  return { containerId, interfaceName };
}

describe('CHECK of the addresses of a claim', () => {
  it('succeeds with one read per lease', async () => {
    const { world, pod } = await attached();
    expect(await world.claimed.check(sandbox(world, pod), FIVE, world.call())).to.equal('held');
    expect(world.reads).to.deep.equal(['addressleases blue.10-0-0-5']);
  });

  const losses: { name: string; lose: (world: AgentWorld) => void }[] = [
    { name: 'deleted', lose: (world) => world.remove('addressleases', 'blue.10-0-0-5') },
    { name: 'held by another claim', lose: (world) => void world.addLease('10.0.0.5/24', makeClaim('vm2', 'data')) },
    {
      name: 'released',
      lose: (world) => {
        world.addLease('10.0.0.5/24', world.claim()).spec.releasedAt = '2026-01-01T00:00:00Z';
      },
    },
  ];
  for (const { name, lose } of losses) {
    it(`fails if the lease is ${name}`, async () => {
      const { world, pod } = await attached();
      lose(world);
      expect(await world.claimed.check(sandbox(world, pod), FIVE, world.call())).to.equal('lost');
    });
  }

  it('fails for an address that the sandbox never got', async () => {
    const { world, pod } = await attached();
    const answer = await world.claimed.check(sandbox(world, pod), [parseAddress('10.0.0.6')], world.call());
    expect(answer).to.equal('lost');
  });

  it("returns unknown for a sandbox without a claim's addresses", async () => {
    const { world, pod } = await attached();
    const other = { ...sandbox(world, pod), containerId: 'c2' };
    expect(await world.claimed.check(other, FIVE, world.call())).to.equal('unknown');
  });

  it('succeeds after a restart of the agent if the pod is known', async () => {
    const world = worldWithVm();
    const attachment = world.attachment(world.launcher());
    expect(await world.claimed.check(attachment, FIVE, world.call())).to.equal('held');
    expect(await world.claimed.check(attachment, [parseAddress('10.0.0.6')], world.call())).to.equal('lost');
  });

  it('returns unknown for a pod without a claim', async () => {
    const world = worldWithVm();
    const attachment = world.attachment(world.tenantPod());
    expect(await world.claimed.check(attachment, FIVE, world.call())).to.equal('unknown');
  });

  it('returns unknown while the API server is not available', async () => {
    const { world, pod } = await attached();
    world.disconnect();
    expect(await world.claimed.check(sandbox(world, pod), FIVE, world.call())).to.equal('unknown');
  });

  it('forgets the sandboxes of a deleted pod', async () => {
    const { world, pod } = await attached();
    world.podInformer.delete(`vms/${pod.metadata.name}`);
    expect(await world.claimed.check(sandbox(world, pod), FIVE, world.call())).to.equal('unknown');
  });
});
