import { expect } from 'chai';
import { adminPool, nad } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';

const BRIDGE = { name: 'blue', type: 'bridge', allowPersistentIPs: true };
const EVENT = 'NetworkAttachmentDefinition blue ContainerInterfaceEnabled: The kernel of launchers uses the interface';

describe('the event for launchers that speak beside their guests', () => {
  let world: PoolsWorld;

  beforeEach(() => {
    world = new PoolsWorld();
    world.putPool(adminPool('p', { guest: {}, namespaces: ['vms'] }));
  });

  /** Returns the events of a NAD in the namespace vms. */
  async function eventsOf(config: object, key = 'vms/blue'): Promise<string[]> {
    world.putNads(nad(key, config));
    await world.settle();
    return world.events.map((event) => event.slice(0, EVENT.length));
  }

  it('is recorded once on the NAD of a bridge', async () => {
    expect(await eventsOf(BRIDGE)).to.deep.equal([EVENT]);
    await world.settle();
    expect(world.events).to.have.length(1);
  });

  it('is recorded when the pool gets spec.guest', async () => {
    world.putPool(adminPool('p', { namespaces: ['vms'] }));
    expect(await eventsOf(BRIDGE)).to.deep.equal([]);
    world.putPool(adminPool('p', { guest: {}, namespaces: ['vms'] }));
    await world.settle();
    expect(world.events).to.have.length(1);
  });

  for (const [what, config, key] of [
    ['disables the interface', { ...BRIDGE, disableContainerInterface: true }],
    ['has no such setting', { ...BRIDGE, type: 'macvlan' }],
    ['delegates IPAM', { ...BRIDGE, ipam: { type: 'host-local' } }],
    ['is not for VMs with persistent addresses', { ...BRIDGE, allowPersistentIPs: false }],
    ['is in a namespace that the pool does not serve', BRIDGE, 'others/blue'],
  ] as const) {
    it(`is not recorded for a NAD that ${what}`, async () => {
      expect(await eventsOf(config, key)).to.deep.equal([]);
    });
  }
});
