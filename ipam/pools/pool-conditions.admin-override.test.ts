import { expect } from 'chai';
import { adminPool, claimOf, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';

const SUBNETS = { subnets: [{ cidr: '10.9.0.0/24' }] };
const EVERYBODYS = adminPool('admins');
const SHARED = adminPool('admins', { namespaces: ['vms', 'labs'] });

describe("a derived pool beside an administrator's pool", () => {
  let world: PoolsWorld;

  beforeEach(async () => {
    world = new PoolsWorld();
    world.putNads(nad('vms/blue', holdfastConfig(SUBNETS)));
    await world.settle();
  });

  /** The pool that serves a workload through the NAD. */
  function poolOf(namespace: string): string {
    const found = world.directory.resolve(claimOf(`${namespace}/c`, 'vms/blue'));
    return found.kind === 'served' ? found.pool.name : found.kind;
  }

  it("reports that it serves no workloads if the administrator's pool serves all, and names that pool", async () => {
    world.putPool(EVERYBODYS);
    await world.settle();
    expect([poolOf('vms'), poolOf('others')]).to.deep.equal(['admins', 'admins']);
    const why =
      /AddressPool blue\.vms serves no workloads: AddressPool admins, which an administrator created for network blue,/;
    expect(world.condition('blue.vms', 'Ready'))
      .to.match(/^False Conflict: /)
      .and.to.match(why);
    expect(world.condition('blue.vms', 'Conflict'))
      .to.match(/^True AdminPool: /)
      .and.to.match(why);
    expect(world.condition('admins', 'Ready')).to.equal('True Serving: Serves network blue');
    expect(world.condition('admins', 'Conflict')).to.match(/^False NoConflict/);
    expect(world.events.map((event) => event.split(':')[0])).to.deep.equal([
      'AddressPool blue.vms AddressPoolConflict',
    ]);
  });

  it("reports the namespaces that it still serves if the administrator's pool serves only some", async () => {
    world.putNads(nad('vms/blue', holdfastConfig({ ...SUBNETS, namespaces: ['*'] })));
    world.putPool(SHARED);
    await world.settle();
    expect([poolOf('vms'), poolOf('others')]).to.deep.equal(['admins', 'blue.vms']);
    expect(world.condition('blue.vms', 'Ready')).to.equal('True Serving: Serves network blue for other namespaces');
    expect(world.condition('blue.vms', 'Conflict')).to.match(
      /^True AdminPool: .* serves no workloads of namespace vms: .*AddressPool admins/,
    );
  });

  it("serves all of its users if the administrator's pool is for other namespaces", async () => {
    world.putPool(adminPool('admins', { namespaces: ['labs'] }));
    await world.settle();
    expect(poolOf('vms')).to.equal('blue.vms');
    expect(world.condition('blue.vms', 'Ready')).to.equal('True Serving: Serves network blue');
    expect(world.condition('blue.vms', 'Conflict')).to.match(/^False NoConflict/);
  });

  it("serves no workloads even if the administrator's pool cannot serve", async () => {
    world.putPool(adminPool('admins', { cidr: '10.0.0.1/24' }));
    await world.settle();
    expect(poolOf('vms')).to.equal('unserved');
    expect(world.condition('blue.vms', 'Conflict')).to.match(/^True AdminPool: .*AddressPool admins/);
  });

  it("names the serving one of several administrators' pools", async () => {
    world.putPool(adminPool('bad', { cidr: '10.0.0.1/24' }));
    world.putPool(adminPool('good', { born: 2 }));
    await world.settle();
    expect(poolOf('vms')).to.equal('good');
    expect(world.condition('blue.vms', 'Conflict')).to.match(/AddressPool good, which an administrator created/);
  });

  it("keeps its leases, and serves again once the administrator's pool is deleted", async () => {
    world.lease('blue.vms', '10.9.0.5', 'vms/c');
    world.putPool(EVERYBODYS);
    await world.settle();
    expect(world.pools.get('blue.vms')?.status).to.include({ leased: 1 });
    world.lease('admins', '10.0.0.5', 'vms/d');
    world.deletePool('admins');
    await world.settle();
    expect(world.condition('admins', 'Ready')).to.match(/^False Deleting/);
    expect(poolOf('vms')).to.equal('blue.vms');
    expect(world.condition('blue.vms', 'Ready')).to.equal('True Serving: Serves network blue');
    expect(world.condition('blue.vms', 'Conflict')).to.match(/^False NoConflict/);
  });
});
