import { expect } from 'chai';
import type { Pod } from '../../../api/pod.js';
import { type AgentWorld, worldWithVm } from '../testing/agent-world.js';
import { ManualClock } from '../../../test/manual-clock.js';
import { adminPool, nadDefinition } from '../../../test/objects/pool-objects.js';

const GRANTED = '10.0.0.5/24';
const LEASE = 'addressleases blue.10-0-0-5';
const NAD = 'network-attachment-definitions vms/blue';
const THIRD_MS = 10_000;

describe('the prefetch of claims', () => {
  let clock: ManualClock;
  let world: AgentWorld;
  beforeEach(() => {
    clock = new ManualClock(Date.UTC(2026, 0, 1));
    world = worldWithVm(clock);
    world.claimed.start();
  });
  afterEach(() => world.claimed.stop());

  /** Waits until all requests are answered and only timers are left. */
  async function settled(): Promise<string[]> {
    await new Promise((resolve) => setImmediate(resolve));
    return world.reads.splice(0);
  }

  async function later(ms: number): Promise<string[]> {
    clock.advanceTo(clock.now() + ms);
    return settled();
  }

  it('leaves one read per lease to the ADD of a launcher', async () => {
    world.addVm('vm1', { data: 'blue' }, ['10.0.0.5/24', 'fd00::5/64']);
    const pod = world.launcher();
    expect(await settled()).to.include.members([LEASE, 'ipamclaims vms/vm1.data']);
    expect(await world.add(pod)).to.equal('10.0.0.5/24 fd00::5/64');
    expect(world.reads).to.deep.equal([LEASE, 'addressleases blue.fd00-0000-0000-0000-0000-0000-0000-0005']);
  });

  it('leaves one more read to the ADD if the claim has another owner pod', async () => {
    world.claim().status!.ownerPod = { name: 'earlier' };
    const pod = world.launcher();
    await settled();
    expect(await world.add(pod)).to.equal(GRANTED);
    expect(world.reads.sort()).to.deep.equal([LEASE, 'pods vms/earlier']);
  });

  it('lets an ADD succeed if the API server became unavailable after the pod was bound', async () => {
    world.claim().status!.ownerPod = { name: 'earlier' };
    const pod = world.launcher();
    await settled();
    world.disconnect();
    await later(THIRD_MS);
    await later(2 * THIRD_MS);
    expect(await world.add(pod)).to.equal(GRANTED);
    clock.advanceTo(clock.now() + 1);
    expect(await world.add(pod)).to.match(/^11 the API server is not available/);
  });

  it('reads NAD and derived pool anew for each launcher, so that its ADD succeeds for as long', async () => {
    world.pools.delete('blue');
    world.put('addresspools', adminPool('blue.vms', { nadNamespace: 'vms' }));
    const first = world.launcher();
    expect(await settled()).to.include.members([NAD, 'addresspools blue.vms']);
    world.addPod({ ...first, status: { phase: 'Running' } });
    await later(2 * THIRD_MS);
    world.addVm('vm2', { data: 'blue' }, ['10.0.0.6/24']);
    const second = world.launcher('vm2');
    await settled();
    world.disconnect();
    await later(3 * THIRD_MS);
    expect(await world.add(second)).to.equal('10.0.0.6/24');
    clock.advanceTo(clock.now() + 1);
    expect(await world.add(second)).to.match(/^11 the API server is not available/);
  });

  it('reads again until the ADD comes', async () => {
    world.launcher();
    await settled();
    expect(await later(THIRD_MS)).to.include(LEASE);
    expect(await later(THIRD_MS)).to.include(LEASE);
  });

  it('stops reading for a pod whose ADD does not come for minutes', async () => {
    world.launcher();
    let looks = 0;
    for (let round = 0; round < 60; round++) if ((await later(THIRD_MS)).includes(LEASE)) looks++;
    expect(looks).to.equal(30);
  });

  it('reads as soon as the NAD exists, which may be later than the pod', async () => {
    world.removeNad('blue');
    world.launcher();
    expect(await settled()).to.deep.equal([NAD]);
    world.addNad('blue');
    expect(await later(THIRD_MS)).to.include(LEASE);
  });

  const ends: { name: string; end: (pod: Pod) => unknown }[] = [
    { name: 'has had its ADD', end: (pod) => world.add(pod) },
    { name: 'runs', end: (pod) => world.addPod({ ...pod, status: { phase: 'Running' } }) },
    { name: 'has ended', end: (pod) => world.addPod({ ...pod, status: { phase: 'Failed' } }) },
    { name: 'was deleted', end: (pod) => world.podInformer.delete(`vms/${pod.metadata.name}`) },
  ];
  for (const { name, end } of ends) {
    it(`stops reading once the pod ${name}`, async () => {
      const pod = world.launcher();
      await settled();
      await end(pod);
      await settled();
      await later(THIRD_MS);
      world.reads.length = 0;
      expect(await later(THIRD_MS)).to.deep.equal([]);
    });
  }

  it('reads the claim of an interface that is hotplugged into a running pod', async () => {
    world.addVm('vm1', { data: 'blue', more: 'blue' });
    world.launcher('vm1', { phase: 'Running' });
    expect(await settled()).to.deep.equal([]);
    world.launcher('vm1', { phase: 'Running', networks: { data: 'blue', more: 'blue' } });
    expect(await settled()).to.include('ipamclaims vms/vm1.more');
  });

  const strangers: { name: string; add: () => void }[] = [
    { name: 'pods that are not launchers', add: () => void world.tenantPod('vm1.data') },
    { name: 'launchers that ran before the agent', add: () => void world.launcher('vm1', { phase: 'Running' }) },
    {
      name: 'pods with an invalid annotation',
      add: () => {
        const pod = world.launcher('vm1', { phase: 'Running' });
        pod.metadata.annotations = { 'k8s.v1.cni.cncf.io/networks': '{' };
        world.addPod(pod);
      },
    },
  ];
  for (const { name, add } of strangers) {
    it(`reads nothing for ${name}`, async () => {
      add();
      expect(await settled()).to.deep.equal([]);
    });
  }

  it('reads only the NAD of a network with another IPAM', async () => {
    world.put('network-attachment-definitions', nadDefinition('vms/blue', { name: 'blue', type: 'ovn' }));
    world.launcher();
    expect(await settled()).to.deep.equal([NAD]);
  });

  it('continues with other pods if the reads for one fail', async () => {
    world.before = (read) => {
      if (read.includes('vm1')) throw new Error('broken');
    };
    world.launcher();
    world.addVm('vm2');
    world.launcher('vm2');
    expect(await settled()).to.include('ipamclaims vms/vm2.data');
  });
});
