import { expect } from 'chai';
import { adminPool } from '../../test/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';

describe('leases that an admin reserves in a pool', () => {
  let world: PoolsWorld;

  beforeEach(async () => {
    world = new PoolsWorld();
    world.putPool(adminPool('p', { subnets: [{ cidr: '10.0.0.0/28', gateway: '10.0.0.1', reserved: ['10.0.0.3'] }] }));
    await world.settle();
  });

  const counts = () => {
    const { capacity, free, reserved } = world.pools.get('p')!.status!;
    return { capacity, free, reserved };
  };

  it('take addresses from those that anybody may have, and leave the capacity as it is', async () => {
    expect(counts()).to.deep.equal({ capacity: 13, free: 12, reserved: 1 });
    world.reserve('p', '10.0.0.3');
    world.reserve('p', '10.0.0.4');
    await world.settle();
    expect(counts()).to.deep.equal({ capacity: 13, free: 11, reserved: 2 });
    expect(world.condition('p', 'Ready')).to.equal('True Serving: serves network blue');
  });

  for (const [where, address, addressSpace, lease] of [
    ['outside of its subnets', '10.7.0.5', 'blue', 'blue.10-7-0-5'],
    ['where it leases nothing', '10.0.0.1', 'blue', 'blue.10-0-0-1'],
    ['in another address space', '10.0.0.5', 'red', 'red.10-0-0-5'],
  ] as const) {
    it(`add nothing to its capacity ${where}, and are shown`, async () => {
      world.reserve('p', address, addressSpace);
      await world.settle();
      expect(counts()).to.deep.equal({ capacity: 13, free: 12, reserved: 1 });
      expect(world.condition('p', 'Ready')).to.match(/^True LeasedOutside: serves; to no effect are reserved /);
      expect(world.condition('p', 'Ready')).to.include(` ${lease}: delete`).and.to.include('address space blue');
      expect(world.events.join()).to.match(/^AddressPool p AddressPoolInvalid: /);
      world.expire(address);
      await world.settle();
      expect(world.condition('p', 'Ready')).to.equal('True Serving: serves network blue');
    });
  }

  it('are shown beside addresses of owners that its spec leaves out, a few by name', async () => {
    world.lease('p', '10.7.0.200', 'vms/c');
    for (let i = 1; i <= 7; i++) world.reserve('p', `10.7.0.${i}`);
    await world.settle();
    expect(world.condition('p', 'Ready'))
      .to.include('10.7.0.200 (IPAMClaim vms/c): they stay with their owners')
      .and.to.include('reserved blue.10-7-0-1, ')
      .and.to.include('blue.10-7-0-5 and 2 more: delete');
    expect(world.pools.get('p')?.status).to.include({ leased: 1, reserved: 1, capacity: 14 });
  });

  it('hold up its deletion wherever they are', async () => {
    world.reserve('p', '10.7.0.5');
    world.deletePool('p');
    await world.settle();
    expect(world.condition('p', 'DeletionBlocked')).to.match(/^True Leased: .*10\.7\.0\.5 \(reserved\)/);
  });
});
