import { expect } from 'chai';
import { adminPool } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';

describe('reservations that an administrator creates in a pool', () => {
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

  it('reduce the free addresses and leave the capacity unchanged', async () => {
    expect(counts()).to.deep.equal({ capacity: 13, free: 12, reserved: 1 });
    world.reserve('p', '10.0.0.3');
    world.reserve('p', '10.0.0.4');
    await world.settle();
    expect(counts()).to.deep.equal({ capacity: 13, free: 11, reserved: 2 });
    expect(world.condition('p', 'Ready')).to.equal('True Serving: Serves network blue');
  });

  for (const [where, address, addressSpace, lease] of [
    ['outside its subnets', '10.7.0.5', 'blue', 'blue.10-7-0-5'],
    ['at addresses that it does not lease', '10.0.0.1', 'blue', 'blue.10-0-0-1'],
    ['in another address space', '10.0.0.5', 'red', 'red.10-0-0-5'],
  ] as const) {
    it(`do not count as capacity ${where}, and are reported`, async () => {
      world.reserve('p', address, addressSpace);
      await world.settle();
      expect(counts()).to.deep.equal({ capacity: 13, free: 12, reserved: 1 });
      expect(world.condition('p', 'Ready')).to.match(
        /^True LeasedOutside: Serves network blue\. Reservations without effect: /,
      );
      expect(world.condition('p', 'Ready')).to.include(` ${lease}. Delete`).and.to.include('address space blue');
      expect(world.events.join()).to.match(/^AddressPool p AddressPoolInvalid: /);
      world.expire(address);
      await world.settle();
      expect(world.condition('p', 'Ready')).to.equal('True Serving: Serves network blue');
    });
  }

  it('are reported beside leases outside the spec, a few of them by name', async () => {
    world.lease('p', '10.7.0.200', 'vms/c');
    for (let i = 1; i <= 7; i++) world.reserve('p', `10.7.0.${i}`);
    await world.settle();
    expect(world.condition('p', 'Ready'))
      .to.include('10.7.0.200 (IPAMClaim vms/c). The owners keep them')
      .and.to.include('without effect: blue.10-7-0-1, ')
      .and.to.include('blue.10-7-0-5 and 2 more. Delete');
    expect(world.pools.get('p')?.status).to.include({ leased: 1, reserved: 1, capacity: 14 });
  });

  it('block the deletion of the pool wherever they are', async () => {
    world.reserve('p', '10.7.0.5');
    world.deletePool('p');
    await world.settle();
    expect(world.condition('p', 'DeletionBlocked')).to.match(/^True Leased: .*10\.7\.0\.5 \(reserved\)/);
  });
});
