import { expect } from 'chai';
import { type AgentWorld, worldWithVm } from '../testing/agent-world.js';
import { FORGED_OWNERS } from '../../../test/objects/forged-owners.js';

const GRANTED = '10.0.0.5/24';
const USED =
  /^11 IPAMClaim vms.vm1.data is used by pod vms.virt-launcher-vm1-a: another pod can use it once that pod has ended/;

/** Sets the claim's owner pod, as ipam does. */
function ownedBy(world: AgentWorld, pod: string): void {
  world.claim().status!.ownerPod = { name: pod };
}

describe('a second pod that uses a claim', () => {
  let world: AgentWorld;

  beforeEach(() => {
    world = worldWithVm();
  });

  it('gets the addresses if the first pod was deleted', async () => {
    ownedBy(world, 'virt-launcher-vm1-old');
    expect(await world.add(world.launcher())).to.equal(GRANTED);
    expect(world.reads).to.include('pods vms/virt-launcher-vm1-old');
  });

  for (const phase of ['Succeeded', 'Failed']) {
    it(`gets the addresses if the first pod is ${phase}`, async () => {
      world.launcher('vm1', { node: 'node2', phase });
      ownedBy(world, 'virt-launcher-vm1-a');
      expect(await world.add(world.launcher('vm1', { name: 'b' }))).to.equal(GRANTED);
    });
  }

  it('has to wait while the first pod runs', async () => {
    world.launcher('vm1', { node: 'node2' });
    ownedBy(world, 'virt-launcher-vm1-a');
    expect(await world.add(world.launcher('vm1', { name: 'b' }))).to.match(USED);
  });

  for (const { name, owners, isController } of FORGED_OWNERS) {
    it(`${isController === true ? 'has to wait' : 'gets the addresses'} while the other one lives with ${name}`, async () => {
      const other = world.launcher('vm1', { node: 'node2' });
      other.metadata.ownerReferences = [...owners];
      ownedBy(world, 'virt-launcher-vm1-a');
      const answer = await world.add(world.launcher('vm1', { name: 'b' }));
      if (isController === true) expect(answer).to.match(USED);
      else expect(answer).to.equal(GRANTED);
    });
  }

  it('gets the addresses if the first pod is a launcher of another VM', async () => {
    world.addVm('vm2', { data: 'blue' }, ['10.0.0.9/24']);
    world.launcher('vm2', { node: 'node2', phase: 'Running' });
    ownedBy(world, 'virt-launcher-vm2-a');
    expect(await world.add(world.launcher('vm1', { name: 'b' }))).to.equal(GRANTED);
  });

  it('has to wait while the first pod is being deleted, because its containers may run', async () => {
    const other = world.launcher('vm1', { node: 'node2', phase: 'Running' });
    other.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    ownedBy(world, 'virt-launcher-vm1-a');
    expect(await world.add(world.launcher('vm1', { name: 'b' }))).to.match(USED);
  });

  it('gets the addresses as the target of a migration', async () => {
    world.launcher('vm1', { node: 'node2', phase: 'Running' });
    ownedBy(world, 'virt-launcher-vm1-a');
    const target = world.launcher('vm1', { name: 'b', migration: 'm1', born: '2026-01-01T01:00:00Z' });
    expect(await world.add(target)).to.equal(GRANTED);
  });

  it('has to wait with a migration label if the first pod runs another VMI', async () => {
    const other = world.launcher('vm1', { node: 'node2', phase: 'Running' });
    other.metadata.ownerReferences![0]!.uid = 'earlier-vmi';
    ownedBy(world, 'virt-launcher-vm1-a');
    const target = world.launcher('vm1', { name: 'b', migration: 'm1', born: '2026-01-01T01:00:00Z' });
    expect(await world.add(target)).to.match(USED);
  });

  it('has to wait as a former migration target whose VM has moved on', async () => {
    world.launcher('vm1', { node: 'node2', phase: 'Running', migration: 'm2', born: '2026-01-01T02:00:00Z' });
    ownedBy(world, 'virt-launcher-vm1-a');
    const source = world.launcher('vm1', { name: 'b', migration: 'm1', born: '2026-01-01T01:00:00Z' });
    expect(await world.add(source)).to.match(USED);
  });

  it('has to wait for a launcher on the same node that is not the owner pod yet', async () => {
    const other = world.launcher();
    other.metadata.ownerReferences![0]!.uid = 'earlier-vmi';
    world.addPod(other);
    const answer = await world.add(world.launcher('vm1', { name: 'b' }));
    expect(answer).to.match(USED);
  });

  it('gets the addresses if a live read shows that a launcher on the same node has ended', async () => {
    const other = world.launcher();
    world.put('pods', { ...other, status: { phase: 'Succeeded' } });
    ownedBy(world, 'virt-launcher-vm1-a');
    expect(await world.add(world.launcher('vm1', { name: 'b' }))).to.equal(GRANTED);
  });

  it('is not looked for if the pod itself is the owner pod and its sandbox is recreated', async () => {
    const pod = world.launcher();
    ownedBy(world, pod.metadata.name);
    expect(await world.add(pod)).to.equal(GRANTED);
    expect(world.reads.filter((read) => read.startsWith('pods'))).to.deep.equal([]);
  });

  it("does not block the VM if it is a tenant's pod that only refers to the claim", async () => {
    world.tenantPod('vm1.data');
    expect(await world.add(world.launcher())).to.equal(GRANTED);
  });

  it('has to wait while the API server cannot say whether the first pod runs', async () => {
    const pod = world.launcher();
    expect(await world.add(pod)).to.equal(GRANTED);
    ownedBy(world, 'elsewhere');
    await world.clock.sleep(1);
    // reads the claim again
    expect(await world.claimed.hasClaim(world.attachment(pod), world.call())).to.equal(true);
    world.disconnect();
    expect(await world.add(pod)).to.match(/^11 the API server is not available/);
  });
});
