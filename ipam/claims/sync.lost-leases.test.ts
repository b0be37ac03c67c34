import { expect } from 'chai';
import { type Name, ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';

const WAIT = '. Request another address, or wait until this one is free';

const FOUR: readonly Name[] = ['a', 'b', 'c', 'd'];

function loseAll({ cluster }: ClaimSyncScenario): void {
  for (const { metadata } of cluster.world.list('addressleases')) {
    cluster.world.remove('addressleases', metadata.name);
  }
}

describe('a claim whose lease a user deletes', () => {
  let scene: ClaimSyncScenario;

  beforeEach(() => {
    scene = new ClaimSyncScenario();
  });

  it('gets the address in its status back, even though its request for another one was refused', async () => {
    scene.create('a', { owned: true });
    await scene.cluster.settle();
    scene.create('b', { request: '["10.0.0.5"]' });
    await scene.cluster.settle();
    scene.request('a', '["10.0.0.5"]');
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    scene.cluster.world.remove('addressleases', 'blue.10-0-0-2');
    await scene.cluster.settle();
    expect([scene.ipsOf('a'), scene.heldBy('a')]).to.deep.equal([['10.0.0.2'], ['10.0.0.2']]);
  });

  it('gets its address back before an older claim that requested exactly that address', async () => {
    scene.create('a', { owned: true });
    scene.create('b', { request: '["10.0.0.5"]' });
    await scene.cluster.settle();
    scene.request('b', undefined);
    scene.cluster.operate({ do: 'startPod', name: 'b' });
    scene.request('a', '["10.0.0.5"]');
    await scene.cluster.settle();
    loseAll(scene);
    await scene.cluster.settle();
    expect([scene.heldBy('a'), scene.heldBy('b')]).to.deep.equal([['10.0.0.2'], ['10.0.0.5']]);
  });

  it('gets its address back before claims that wait for any address, even if all leases are lost', async () => {
    for (const name of FOUR) scene.create(name);
    scene.create('e');
    await scene.cluster.settle();
    expect(scene.reasonOf('e')).to.equal('SubnetExhausted');
    const before = FOUR.map((name) => scene.ipsOf(name));
    loseAll(scene);
    scene.process.deliverAll();
    await scene.process.sync('vms/e');
    expect(scene.heldBy('e')).to.deep.equal([]);
    await scene.cluster.settle();
    expect(FOUR.map((name) => scene.heldBy(name))).to.deep.equal(before);
    expect(scene.reasonOf('e')).to.equal('SubnetExhausted');
  });

  it('is named to a claim that requests its address before it has the lease again', async () => {
    scene.create('a');
    await scene.cluster.settle();
    loseAll(scene);
    scene.create('b', { request: '["10.0.0.2"]' });
    await scene.sync('b');
    const promised = `10.0.0.2 is kept for IPAMClaim vms/a, which has it in its status and no lease yet${WAIT}`;
    expect(scene.claim('b').status?.conditions?.[0]).to.include({ reason: 'IPAddressConflict', message: promised });
    await scene.cluster.settle();
    const held = `10.0.0.2 is allocated to IPAMClaim vms/a${WAIT}`;
    expect(scene.claim('b').status?.conditions?.[0]).to.include({ reason: 'IPAddressConflict', message: held });
  });

  it('keeps the right to its address until it is gone, even while it is being deleted', async () => {
    for (const name of FOUR) scene.create(name);
    scene.create('e');
    await scene.cluster.settle();
    scene.cluster.operate({ do: 'delete', name: 'a' });
    scene.cluster.world.remove('addressleases', 'blue.10-0-0-2');
    scene.process.deliverAll();
    await scene.process.sync('vms/e');
    expect(scene.ipsOf('e')).to.deep.equal([]);
    scene.finish('a');
    await scene.cluster.settle();
    expect(scene.heldBy('e')).to.deep.equal(['10.0.0.2']);
  });

  it('gets its address back before a claim that was restored with the same address and refused', async () => {
    scene.create('b', { restored: ['10.0.0.4/29'] });
    await scene.cluster.settle();
    scene.create('a', { restored: ['10.0.0.4/29'] });
    await scene.cluster.settle();
    expect(scene.reasonOf('a')).to.equal('IPAddressConflict');
    loseAll(scene);
    scene.process.deliverAll();
    await scene.process.sync('vms/a');
    expect(scene.heldBy('a')).to.deep.equal([]);
    await scene.cluster.settle();
    expect([scene.heldBy('a'), scene.heldBy('b')]).to.deep.equal([[], ['10.0.0.4']]);
  });

  it('gets its address back if the lease was lost while no process led and a pool serves it only later', async () => {
    scene.create('a');
    scene.create('b');
    await scene.cluster.settle();
    scene.create('c', { request: '["10.0.0.3"]' });
    scene.cluster.operate({ do: 'pool', pool: 'gone' });
    loseAll(scene);
    scene.cluster.restart(0);
    await scene.cluster.settle();
    scene.cluster.operate({ do: 'pool', pool: 'small' });
    await scene.cluster.settle();
    expect([scene.heldBy('a'), scene.heldBy('b'), scene.heldBy('c')]).to.deep.equal([['10.0.0.2'], ['10.0.0.3'], []]);
  });

  it('gets its address back even if the cache does not show its status yet', async () => {
    for (const name of FOUR) scene.create(name);
    scene.process.deliverAll();
    for (const name of FOUR) await scene.process.sync(`vms/${name}`);
    scene.create('e');
    scene.process.deliver('ipamclaims', 1);
    scene.process.deliver('addressleases', Infinity);
    loseAll(scene);
    scene.process.deliver('addressleases', Infinity);
    await scene.process.sync('vms/e');
    await scene.cluster.settle();
    expect(FOUR.map((name) => scene.heldBy(name))).to.deep.equal(FOUR.map((name) => scene.ipsOf(name)));
    expect(FOUR.flatMap((name) => scene.heldBy(name))).to.have.lengthOf(4);
  });
});

describe('a claim that shows an address of another claim', () => {
  let scene: ClaimSyncScenario;

  beforeEach(async () => {
    scene = new ClaimSyncScenario();
    scene.create('a', { restored: ['10.0.0.4/29'] });
    await scene.cluster.settle();
    scene.create('b', { restored: ['10.0.0.4/29'] });
    await scene.cluster.settle();
    expect(scene.reasonOf('b')).to.equal('IPAddressConflict');
  });

  it('gets another address if it requests one', async () => {
    scene.request('b', '["10.0.0.5"]');
    await scene.cluster.settle();
    expect([scene.ipsOf('b'), scene.heldBy('b')]).to.deep.equal([['10.0.0.5'], ['10.0.0.5']]);
    expect(scene.reasonOf('b')).to.equal('SuccessfulAllocation');
  });

  it('gets the requested address as soon as that is free', async () => {
    scene.create('c', { request: '["10.0.0.5"]' });
    await scene.cluster.settle();
    scene.request('b', '["10.0.0.5"]');
    await scene.cluster.settle();
    expect([scene.ipsOf('b'), scene.heldBy('b')]).to.deep.equal([['10.0.0.4'], []]);
    scene.finish('c');
    await scene.cluster.settle();
    await scene.cluster.coolDown();
    expect([scene.ipsOf('b'), scene.heldBy('b')]).to.deep.equal([['10.0.0.5'], ['10.0.0.5']]);
  });

  it('gets the address once the other claim is gone, before any claim that waits', async () => {
    for (const name of ['c', 'd', 'e'] as const) scene.create(name);
    await scene.cluster.settle();
    scene.finish('e');
    await scene.cluster.coolDown();
    scene.create('e');
    scene.finish('a');
    await scene.cluster.settle();
    scene.create('a');
    await scene.cluster.settle();
    expect(scene.reasonOf('a')).to.equal('SubnetExhausted');
    await scene.cluster.coolDown();
    expect([scene.heldBy('b'), scene.heldBy('a')]).to.deep.equal([['10.0.0.4'], []]);
  });
});

describe('a claim that was restored and requests another address than it shows', () => {
  it('gets first the shown address, then the requested one, and releases the first', async () => {
    const scene = new ClaimSyncScenario();
    scene.create('a', { restored: ['10.0.0.4/29'], request: '["10.0.0.5"]' });
    await scene.cluster.settle();
    expect([scene.ipsOf('a'), scene.heldBy('a')]).to.deep.equal([['10.0.0.5'], ['10.0.0.5']]);
    expect(scene.cluster.world.get('addressleases', 'blue.10-0-0-4')?.spec.releasedAt).to.be.a('string');
  });
});
