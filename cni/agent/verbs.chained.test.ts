import { expect } from 'chai';
import { claimOf } from '../../test/objects/pool-objects.js';
import { CniCode, CniError } from './cni-error.js';
import { VerbsWorld } from './testing/verbs-world.js';

const V11 = { cniVersion: '1.1.0' };

describe('the CNI verbs of a chained plugin', () => {
  let world: VerbsWorld;

  const PREVIOUS = { cniVersion: '1.0.0', interfaces: [{ name: 'net1', sandbox: '/run/netns/p1' }], dns: {} };
  const CHAINED = { type: 'holdfast', bridge: undefined, ipam: undefined, prevResult: PREVIOUS };
  const BRIDGE = { type: 'bridge', bridge: 'br1', disableContainerInterface: true };

  beforeEach(() => {
    world = new VerbsWorld();
    const [pool] = world.pools;
    world.pools = [{ ...pool!, spec: { ...pool!.spec, guest: {} } }];
    world.config = { cniVersion: '1.0.0', name: 'blue', plugins: [BRIDGE, { type: 'holdfast' }] };
  });

  it('ADD passes the result on, and guards the addresses of the claim', async () => {
    world.claim = claimOf('vms/vm1.data', 'vms/blue');
    expect(await world.perform('ADD', CHAINED)).to.deep.equal(PREVIOUS);
    expect(world.guarded).to.equal('10.0.0.7');
    expect(world.steps).to.deep.equal(['grant claimed']);
  });

  it('ADD leases no address for a pod without a claim, which the guard of the pool allows none', async () => {
    expect(await world.perform('ADD', CHAINED)).to.deep.equal(PREVIOUS);
    expect(world.guarded).to.equal('');
    expect(world.steps).to.deep.equal([]);
  });

  it('ADD fails if no pool serves guests of the network, because its guard is not known', async () => {
    world.pools = [];
    const refusal = await world.refusalOf('ADD', CHAINED);
    expect(refusal).to.include({ code: CniCode.InvalidConfig });
    expect(refusal.message).to.include('no AddressPool with spec.guest serves network blue');
  });

  it('ADD fails if its NAD delegates IPAM to Holdfast, which guards the interface already', async () => {
    const delegating = { ...BRIDGE, ipam: { type: 'holdfast' } };
    world.config = { cniVersion: '1.0.0', name: 'blue', plugins: [delegating, { type: 'holdfast' }] };
    expect((await world.refusalOf('ADD', CHAINED)).message).to.include(
      'guards interfaces by itself: remove the plugin',
    );
  });

  it('ADD fails without the result of the plugin before it', () => {
    const message = 'prevResult: it is absent: write {"type": "holdfast"} after the plugin that creates the interface';
    expect(() => world.perform('ADD', { ...CHAINED, prevResult: undefined })).to.throw(CniError, message);
  });

  it('ADD fails if its config is not that of the NAD', async () => {
    expect((await world.refusalOf('ADD', { ...CHAINED, more: 1 })).message).to.include('other keys or values');
  });

  it('the other verbs are about no address', async () => {
    world.missing = undefined;
    expect(await world.perform('CHECK', CHAINED)).to.equal(undefined);
    await world.perform('GC', { ...CHAINED, ...V11, 'cni.dev/valid-attachments': [] });
    world.pools = [];
    await world.perform('STATUS', { ...CHAINED, ...V11 });
    expect(world.steps).to.deep.equal([]);
    await world.perform('DEL', CHAINED);
    expect(world.steps).to.deep.equal(['release c1 net1']);
  });
});
