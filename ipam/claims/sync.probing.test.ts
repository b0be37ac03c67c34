import { expect } from 'chai';
import { PROBE_ANNOTATION } from '../../api/names.js';
import { type ProbeState, formatProbe } from '../../api/probe.js';
import { type Name, ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';
import { expire } from './testing/model/operations.js';
import { setPool } from './testing/model/pools.js';

const HOST = '02:00:00:00:00:0a';
const OTHER = (index: number) => ({ taken: `02:00:00:00:01:0${index}` });

describe('syncing a claim whose pool probes addresses', () => {
  let scene: ClaimSyncScenario;

  beforeEach(() => {
    scene = new ClaimSyncScenario();
    setPool(scene.cluster.world, 'probed');
  });

  const world = () => scene.cluster.world;
  const leaseAt = (address: string) =>
    world()
      .list('addressleases')
      .find(({ spec }) => spec.address === address);
  const messageOf = (name: Name) => scene.claim(name).status?.conditions?.[0]?.message;
  const quarantined = () =>
    world()
      .list('addressleases')
      .filter(({ spec }) => spec.quarantine !== undefined)
      .map(({ spec }) => spec.address);

  /** A pool in which several addresses may be quarantined. */
  function widen(cidrs: string[]): void {
    world().update('addresspools', 'blue', ({ spec }) => (spec.subnets = cidrs.map((cidr) => ({ cidr }))));
  }

  function answer(address: string, state: ProbeState): void {
    const { name = '' } = leaseAt(address)?.metadata ?? {};
    world().update('addressleases', name, ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, [PROBE_ANNOTATION]: formatProbe(state) };
    });
  }

  /** Answers for the address that the claim has been allocated, and syncs the claim. */
  async function answerFor(name: Name, state: ProbeState) {
    const [address = ''] = scene.heldBy(name).slice(-1);
    answer(address, state);
    return scene.sync(name);
  }

  it('requests a probe before the claim shows the address, and waits two seconds at most', async () => {
    scene.create('a');
    const { result, requests } = await scene.sync('a');
    expect([requests, result]).to.deep.equal([['POST addressleases'], { requeueAfterMs: 2_000 }]);
    expect(leaseAt('10.0.0.2')?.metadata.annotations).to.deep.equal({ [PROBE_ANNOTATION]: 'requested' });
    world().now += 500;
    expect(await scene.sync('a')).to.deep.equal({ result: { requeueAfterMs: 1_500 }, requests: [] });
    expect(scene.claim('a').status).to.equal(undefined);
  });

  for (const state of ['free', 'self'] as const) {
    it(`shows an address that is ${state}, without an event`, async () => {
      scene.create('a');
      await scene.sync('a');
      expect((await answerFor('a', state)).requests).to.deep.equal(['PATCH ipamclaims a status']);
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
      expect([messageOf('a'), scene.process.events]).to.deep.equal(['Leased from AddressPool blue', []]);
      expect((await scene.sync('a')).requests).to.deep.equal([]);
    });
  }

  it('shows an address without a probe if no responder answers, and says so', async () => {
    scene.create('a');
    await scene.sync('a');
    world().now += 2_000;
    const { requests } = await scene.sync('a');
    expect(requests).to.deep.equal(['PATCH addressleases blue.10-0-0-2', 'PATCH ipamclaims a status']);
    expect(messageOf('a')).to.equal(
      'Leased from AddressPool blue. ProbeSkipped: 10.0.0.2 was not probed for other hosts',
    );
    expect(scene.process.events).to.deep.equal([
      'Normal AddressPool ProbeSkipped: No responder said within 2 s whether another host has an address, so claims show addresses that were not probed. Look at the pods of the responders, and at spec.guest.attachment',
    ]);
    expect((await scene.sync('a')).requests).to.deep.equal([]);
  });

  it('obeys an answer that comes just before it stops to wait', async () => {
    widen(['10.0.0.0/24']);
    scene.create('a');
    await scene.sync('a');
    world().now += 2_000;
    scene.interruptRequest(0, () => {
      answer('10.0.0.1', { taken: HOST });
      return Promise.resolve();
    });
    await scene.sync('a');
    expect(quarantined()).to.deep.equal(['10.0.0.1']);
    expect(scene.heldBy('a')).to.deep.equal(['10.0.0.2']);
    expect(scene.claim('a').status).to.equal(undefined);
  });

  it('quarantines an address that another host has, reports it, and shows another one', async () => {
    scene.create('a', { owned: true });
    await scene.sync('a');
    const { requests } = await answerFor('a', { taken: HOST });
    expect(requests).to.deep.equal([
      'GET ipamclaims a',
      'PATCH addressleases blue.10-0-0-2',
      'POST addressleases',
      'PATCH ipamclaims a status',
    ]);
    expect(leaseAt('10.0.0.2')?.spec).to.deep.equal({
      address: '10.0.0.2',
      addressSpace: 'blue',
      pool: 'blue',
      quarantine: { mac: HOST, since: '2026-01-01T00:00:01.000Z', until: '2026-01-01T01:00:01.000Z' },
    });
    const message = `AddressTaken: A host with MAC address ${HOST} has 10.0.0.2 of AddressPool blue, so IPAMClaim vms/a gets another address. Give that host another address, or exclude the address from the pool`;
    const kinds = ['IPAMClaim', 'VirtualMachine', 'AddressPool'];
    expect(scene.process.events).to.deep.equal(kinds.map((kind) => `Warning ${kind} ${message}`));
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.3']);
  });

  it('allocates another address of the taken family only', async () => {
    widen(['10.0.0.0/24', '2001:db8::/64']);
    scene.create('a');
    await scene.sync('a');
    answer('10.0.0.1', { taken: HOST });
    answer('2001:db8::1', 'free');
    await scene.sync('a');
    answer('10.0.0.2', 'free');
    await scene.sync('a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2', '2001:db8::1']);
  });

  it('says who has a requested address, and tries again after a minute', async () => {
    scene.create('a', { request: '["10.0.0.4"]' });
    await scene.sync('a');
    await answerFor('a', { taken: HOST });
    expect([scene.reasonOf('a'), scene.ipsOf('a'), scene.heldBy('a')]).to.deep.equal(['IPAddressConflict', [], []]);
    expect(messageOf('a')).to.equal(
      `10.0.0.4 is quarantined by AddressLease blue.10-0-0-4, because MAC address ${HOST} has it: remove that host, or request another address`,
    );
    world().now += 60_000;
    expire(world());
    expect((await scene.sync('a')).result).to.deep.equal({ requeueAfterMs: 2_000 });
    await answerFor('a', 'free');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
  });

  it('never shows a requested address while another host has it, however often it is asked for', async () => {
    widen(['10.0.0.0/24']);
    scene.create('a', { request: '["10.0.0.4"]' });
    for (const attempt of [1, 2, 3, 4, 5, 6]) {
      expect((await scene.sync('a')).result, `attempt ${attempt}`).to.deep.equal({ requeueAfterMs: 2_000 });
      await answerFor('a', { taken: HOST });
      expect([scene.reasonOf('a'), scene.ipsOf('a')]).to.deep.equal(['IPAddressConflict', []]);
      world().now += 60_000;
      expire(world());
    }
  });

  it('keeps its address of the other family while another host has the requested one', async () => {
    widen(['10.0.0.0/24', '2001:db8::/64']);
    scene.create('a', { request: '["2001:db8::4"]' });
    for (const attempt of [1, 2, 3]) {
      await scene.sync('a');
      answer('2001:db8::4', { taken: HOST });
      await scene.sync('a');
      const released = world()
        .list('addressleases')
        .filter(({ spec }) => spec.releasedAt !== undefined);
      expect([scene.heldBy('a'), released, scene.ipsOf('a')], `attempt ${attempt}`).to.deep.equal([
        ['10.0.0.1'],
        [],
        [],
      ]);
      world().now += 60_000;
      expire(world());
    }
    await scene.sync('a');
    answer('10.0.0.1', 'free');
    await answerFor('a', 'free');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.1', '2001:db8::4']);
  });

  it('probes no more while an eighth of the addresses is quarantined, at least one', async () => {
    scene.create('a');
    await scene.sync('a');
    await answerFor('a', { taken: HOST });
    scene.create('b');
    expect((await scene.sync('b')).requests).to.deep.equal(['POST addressleases', 'PATCH ipamclaims b status']);
    expect([scene.ipsOf('a'), scene.ipsOf('b'), quarantined()]).to.deep.equal([
      ['10.0.0.3'],
      ['10.0.0.4'],
      ['10.0.0.2'],
    ]);
    expect(messageOf('b')).to.equal('Leased from AddressPool blue');
    world().now += 3_600_000;
    expire(world());
    scene.create('c');
    expect((await scene.sync('c')).result, 'the quarantine has ended').to.deep.equal({ requeueAfterMs: 2_000 });
  });

  it('releases an address that another host has if no more may be quarantined, and shows another one', async () => {
    scene.create('a');
    scene.create('b');
    await scene.sync('a');
    await scene.sync('b');
    await answerFor('a', OTHER(1));
    await answerFor('b', OTHER(2));
    expect(quarantined()).to.deep.equal(['10.0.0.2']);
    expect(leaseAt('10.0.0.3')?.spec.releasedAt).to.be.a('string');
    expect([scene.ipsOf('a'), scene.ipsOf('b')]).to.deep.equal([['10.0.0.4'], ['10.0.0.5']]);
  });

  it('ignores a host that answers for three addresses until its quarantined leases expire', async () => {
    widen(['10.0.0.0/24']);
    for (const name of ['a', 'b', 'c', 'd'] as const) {
      scene.create(name);
      await scene.sync(name);
    }
    for (const name of ['a', 'b', 'c', 'd'] as const) await answerFor(name, { taken: HOST });
    expect(quarantined()).to.deep.equal(['10.0.0.1', '10.0.0.2', '10.0.0.3']);
    expect(scene.ipsOf('d'), 'the answer for it means nothing').to.deep.equal(['10.0.0.4']);
    await scene.sync('a');
    expect(scene.heldBy('a'), 'it asked before probing stopped').to.deep.equal(['10.0.0.5']);
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
    scene.create('e');
    await scene.sync('e');
    expect(scene.ipsOf('e')).to.deep.equal(['10.0.0.8']);
  });

  it('shows the fifth address without a probe if other hosts have four in a row', async () => {
    widen(['10.0.0.0/24']);
    scene.create('a');
    await scene.sync('a');
    for (const index of [1, 2, 3, 4]) await answerFor('a', OTHER(index));
    expect(quarantined()).to.have.lengthOf(4);
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
    scene.create('b');
    expect((await scene.sync('b')).result, 'other claims are probed').to.deep.equal({ requeueAfterMs: 2_000 });
  });

  it('goes on from the leases after a restart', async () => {
    widen(['10.0.0.0/24']);
    scene.create('a');
    await scene.sync('a');
    world().now += 1_500;
    scene.cluster.restart(0);
    const [restarted] = scene.cluster.processes;
    expect(await restarted?.sync('vms/a'), 'it waits anew').to.deep.equal({ requeueAfterMs: 2_000 });
    answer('10.0.0.1', { taken: HOST });
    scene.cluster.restart(0);
    await scene.cluster.processes[0]?.sync('vms/a');
    expect([quarantined(), scene.heldBy('a')]).to.deep.equal([['10.0.0.1'], ['10.0.0.2']]);
  });

  it('waits anew for an address that it lost before, and gets again', async () => {
    scene.create('a', { request: '["10.0.0.4"]' });
    await scene.sync('a');
    const { name = '', uid } = leaseAt('10.0.0.4')?.metadata ?? {};
    world().update('addressleases', name, ({ spec }) => (spec.releasedAt = new Date(world().now).toISOString()));
    world().now += 1_900;
    expect((await scene.sync('a')).result).to.deep.equal({ requeueAfterMs: 2_000 });
    expect(leaseAt('10.0.0.4')?.metadata.uid).to.equal(uid);
  });

  it('never changes an address that the claim shows', async () => {
    scene.create('a');
    await scene.sync('a');
    await answerFor('a', 'free');
    answer('10.0.0.2', { taken: HOST });
    expect((await scene.sync('a')).requests).to.deep.equal([]);
    expect([scene.ipsOf('a'), quarantined()]).to.deep.equal([['10.0.0.2'], []]);
  });

  it('probes neither restored addresses nor reservations', async () => {
    scene.create('a', { restored: ['10.0.0.5/29'] });
    await scene.sync('a');
    expect(leaseAt('10.0.0.5')?.metadata.annotations).to.equal(undefined);
    const mac = '02:00:00:00:00:01';
    scene.cluster.operate({ do: 'reserve', address: '10.0.0.6', mac });
    scene.create('b', { mac });
    await scene.sync('b');
    expect(scene.ipsOf('b')).to.deep.equal(['10.0.0.6']);
    expect(leaseAt('10.0.0.6')?.metadata.annotations).to.equal(undefined);
  });
});
