import { expect } from 'chai';
import { type Name, ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';

const FOUR: readonly Name[] = ['a', 'b', 'c', 'd'];

function loseAll({ cluster }: ClaimSyncScenario): void {
  for (const { metadata } of cluster.world.list('addressleases')) {
    cluster.world.remove('addressleases', metadata.name);
  }
}

describe('a claim whose lease is deleted by hand', () => {
  let scene: ClaimSyncScenario;

  beforeEach(() => {
    scene = new ClaimSyncScenario();
  });

  it('takes back what it shows though it asks for something else, which was refused', async () => {
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

  it('gets it back before an older one that asks for just that address', async () => {
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

  it('gets it back before those who wait for any address of its pool, also where all leases are lost', async () => {
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

  it('names itself to whoever asks for its address meanwhile', async () => {
    scene.create('a');
    await scene.cluster.settle();
    loseAll(scene);
    scene.create('b', { request: '["10.0.0.2"]' });
    await scene.sync('b');
    const promised = '10.0.0.2 is promised to IPAMClaim vms/a, which shows it and has no lease of it yet';
    expect(scene.claim('b').status?.conditions?.[0]).to.include({ reason: 'IPAddressConflict', message: promised });
    await scene.cluster.settle();
    const held = '10.0.0.2 is held by IPAMClaim vms/a';
    expect(scene.claim('b').status?.conditions?.[0]).to.include({ reason: 'IPAddressConflict', message: held });
  });

  it('has a right to it until it is gone, though it is being deleted', async () => {
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

  it('gets it back before one that was restored with the same address and was refused', async () => {
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

  it('gets it back where the lease was lost while no process led, and a pool serves it only later', async () => {
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

  it('gets it back though the cache does not show yet that its status was written', async () => {
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

describe('a claim that shows what somebody else has', () => {
  let scene: ClaimSyncScenario;

  beforeEach(async () => {
    scene = new ClaimSyncScenario();
    scene.create('a', { restored: ['10.0.0.4/29'] });
    await scene.cluster.settle();
    scene.create('b', { restored: ['10.0.0.4/29'] });
    await scene.cluster.settle();
    expect(scene.reasonOf('b')).to.equal('IPAddressConflict');
  });

  it('may have another one by asking for it', async () => {
    scene.request('b', '["10.0.0.5"]');
    await scene.cluster.settle();
    expect([scene.ipsOf('b'), scene.heldBy('b')]).to.deep.equal([['10.0.0.5'], ['10.0.0.5']]);
    expect(scene.reasonOf('b')).to.equal('SuccessfulAllocation');
  });

  it('has what it asks for as soon as that is free', async () => {
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

  it('has it once that is gone, and nobody else who waits', async () => {
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

describe('a claim that was restored and asks for another address than it shows', () => {
  it('has first the one and then the other, and lets the first one cool down', async () => {
    const scene = new ClaimSyncScenario();
    scene.create('a', { restored: ['10.0.0.4/29'], request: '["10.0.0.5"]' });
    await scene.cluster.settle();
    expect([scene.ipsOf('a'), scene.heldBy('a')]).to.deep.equal([['10.0.0.5'], ['10.0.0.5']]);
    expect(scene.cluster.world.get('addressleases', 'blue.10-0-0-4')?.spec.releasedAt).to.be.a('string');
  });
});
