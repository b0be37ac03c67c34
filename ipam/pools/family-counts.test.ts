import { expect } from 'chai';
import { adminPool } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';

describe('the addresses of a pool', () => {
  let world: PoolsWorld;
  beforeEach(() => (world = new PoolsWorld()));

  it('are counted for each family, until it is removed and none of its addresses is leased', async () => {
    const subnets = [{ cidr: '10.0.0.0/29', reserved: ['10.0.0.6'] }, { cidr: 'fd00::/64' }];
    world.putPool(adminPool('p', { subnets }));
    world.lease('p', '10.0.0.3', 'vms/vm1');
    world.lease('p', 'fd00::1', 'vms/vm1');
    await world.settle();
    const max = Number.MAX_SAFE_INTEGER;
    expect(world.pools.get('p')?.status).to.deep.include({
      ipv4: { capacity: 6, leased: 1, cooling: 0, free: 4, reserved: 1 },
      ipv6: { capacity: max, leased: 1, cooling: 0, free: max, reserved: 0 },
    });
    world.putPool(adminPool('p', { subnets: [{ cidr: '10.0.0.0/29', exclude: ['10.0.0.0/29'] }] }));
    await world.settle();
    const empty = { capacity: 0, leased: 0, cooling: 0, free: 0, reserved: 0 };
    expect(world.pools.get('p')?.status).to.deep.include({
      ipv4: { ...empty, capacity: 1, leased: 1 },
      ipv6: { ...empty, capacity: 1, leased: 1 },
    });
    world.release('fd00::1');
    world.expire('fd00::1');
    await world.settle();
    expect(world.pools.get('p')?.status?.ipv4).to.deep.equal({ ...empty, capacity: 1, leased: 1 });
    expect(world.pools.get('p')?.status).not.to.have.property('ipv6');
  });

  it('count quarantined addresses, which neither drain nor keep the pool from being deleted', async () => {
    const subnets = [{ cidr: '10.0.0.0/29', draining: ['10.0.0.3'] }, { cidr: 'fd00::/64' }];
    world.putPool(adminPool('p', { subnets }));
    for (const address of ['10.0.0.2', '10.0.0.3']) {
      world.lease('p', address, 'vms/vm1');
      world.quarantine(address);
    }
    await world.settle();
    const { status } = world.pools.get('p')!;
    expect(status).to.deep.include({ leased: 0, quarantined: 2, draining: 0 });
    expect(status?.ipv4).to.deep.equal({ capacity: 6, leased: 0, cooling: 0, free: 4, reserved: 0, quarantined: 2 });
    expect(status?.ipv6).to.not.have.property('quarantined');
    world.deletePool('p');
    await world.settle();
    expect(world.pools.get('p')).to.equal(undefined);
    expect([...world.book.expiring()]).to.have.length(2);
  });

  it('count quarantined addresses in a pool that is too large to show its capacity exactly', async () => {
    world.putPool(adminPool('p', { subnets: [{ cidr: 'fd00::/64' }] }));
    world.lease('p', 'fd00::1', 'vms/vm1');
    world.quarantine('fd00::1');
    await world.settle();
    expect(world.pools.get('p')?.status?.quarantined).to.equal(1);
    world.expire('fd00::1');
    await world.settle();
    expect(world.pools.get('p')?.status).to.not.have.property('quarantined');
  });
});
