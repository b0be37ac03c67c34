import { expect } from 'chai';
import { type Name, ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';

const REMEDY = '. Delete VMs and pods that are no longer needed, or ask the administrator to add a range to the pool';

describe('syncing a claim whose pool is full', () => {
  let scene: ClaimSyncScenario;

  beforeEach(() => {
    scene = new ClaimSyncScenario();
  });

  const NAMES: Name[] = ['a', 'b', 'c', 'd', 'e'];

  /** A pool of four addresses, and five claims. */
  beforeEach(async () => {
    for (const name of NAMES) scene.create(name, { owned: true });
    await scene.cluster.settle();
  });

  it('reports the counts of the pool on the claim and its VM, once', async () => {
    await scene.sync('e');
    expect(scene.reasonOf('e')).to.equal('SubnetExhausted');
    expect(scene.process.events).to.deep.equal(
      ['IPAMClaim', 'VirtualMachine'].map(
        (kind) => `Warning ${kind} AddressesNotAllocated: SubnetExhausted: Pool blue is full: 4 of 4 leased${REMEDY}`,
      ),
    );
  });

  it('shows new counts a minute later without an event', async () => {
    const message = () => scene.claim('e').status?.conditions?.[0]?.message;
    const events = scene.process.events.length;
    scene.process.heldByStopped = 2;
    expect((await scene.sync('e')).result).to.deep.equal({ requeueAfterMs: 60_000 });
    expect(message()).to.equal(`Pool blue is full: 4 of 4 leased${REMEDY}`);
    scene.cluster.world.now += 60_000;
    await scene.sync('e');
    expect(message()).to.equal(`Pool blue is full: 4 of 4 leased, 2 of them by stopped VMs${REMEDY}`);
    scene.process.heldByStopped = 0;
    await scene.sync('e');
    expect(message()).to.include('2 of them by stopped VMs');
    expect(scene.process.events).to.have.lengthOf(events);
  });

  it('allocates an address as soon as one has cooled down, and reports it', async () => {
    scene.finish('b');
    await scene.cluster.settle();
    expect(scene.reasonOf('e')).to.equal('SubnetExhausted');
    await scene.cluster.coolDown();
    expect(scene.ipsOf('e')).to.deep.equal(['10.0.0.3']);
    expect(scene.process.events.at(-1)).to.match(/^Normal IPAMClaim AddressesAllocated: Allocated 10\.0\.0\.3/);
  });

  it('tries again when the first address will have cooled down', async () => {
    scene.finish('b');
    await scene.cluster.settle();
    scene.cluster.world.now += 20_000;
    expect((await scene.sync('e')).result).to.deep.equal({ requeueAfterMs: 40_000 });
  });

  it('serves the oldest waiting claim first, whichever is synced first', async () => {
    scene.finish('a');
    scene.finish('b');
    await scene.cluster.settle();
    scene.create('a');
    scene.create('b');
    await scene.cluster.settle();
    scene.cluster.world.now += 70_000;
    scene.cluster.operate({ do: 'expire' });
    scene.process.deliverAll();
    await scene.process.sync('vms/b');
    expect(scene.ipsOf('b')).to.deep.equal([]);
    await scene.cluster.settle();
    expect([scene.ipsOf('e')?.length, scene.ipsOf('a')?.length, scene.ipsOf('b')?.length]).to.deep.equal([1, 1, 0]);
  });

  it('keeps no address of a family for older claims that lack one of the other family only', async () => {
    scene = new ClaimSyncScenario();
    const mac = '02:00:00:00:00:01';
    scene.cluster.operate({ do: 'pool', pool: 'dual' });
    scene.cluster.operate({ do: 'reserve', address: '2001:db8::3', mac });
    scene.cluster.operate({ do: 'reserve', address: '10.0.0.4', mac: '02:00:00:00:00:02' });
    for (const name of ['a', 'b'] as const) scene.create(name);
    scene.create('c', { request: '["10.0.0.6"]' });
    await scene.cluster.settle();
    expect(scene.claim('c').status?.conditions?.[0]?.message).to.include('full for IPv6');
    scene.create('d', { mac });
    await scene.cluster.settle();
    expect(scene.ipsOf('d')).to.have.length(2).and.include('2001:db8::3');
  });
});
