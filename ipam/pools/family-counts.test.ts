import { expect } from 'chai';
import { adminPool } from '../../test/pool-objects.js';
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
});
