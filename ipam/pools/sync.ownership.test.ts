import { expect } from 'chai';
import { adminPool, claimOf, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { slowPool } from '../../test/objects/slow-pool.js';
import { TurnCounter } from '../../test/turn-counter.js';
import { PoolsWorld } from './testing/pools-world.js';

const CIDR = '10.9.0.0/24';
const prod = (key: string, cidr = CIDR) => nad(key, holdfastConfig({ subnets: [{ cidr }] }));
/** The administrator's pool of network blue, for namespace x alone. */
const ADMIN = adminPool('blue', { cidr: CIDR, namespaces: ['x'] });

describe('addresses of a pool that serves other namespaces', () => {
  let world: PoolsWorld;

  beforeEach(() => {
    world = new PoolsWorld();
  });

  it("are in no pool of a NAD that has only the network's name, and the NAD is looked at again", async () => {
    world.putPool(ADMIN);
    world.putNads(prod('a/blue'));
    await world.settle();
    expect(world.pools.get('blue.a')).to.equal(undefined);
    expect(world.events.join()).to.match(/blue NetworkAttachmentNotPermitted: NAD a\/blue: addressSpace "blue"/);
    expect(world.events.join()).to.not.match(/AddressPool blue|10\.9/);
    expect(await world.sync('a/blue')).to.deep.equal({ requeueAfterMs: 60_000 });
  });

  it('stay in a pool that existed before, and conditions and an event name it', async () => {
    world.putNads(prod('a/blue'));
    await world.settle();
    world.putPool(ADMIN);
    await world.settle();
    expect(world.condition('blue.a', 'NotPermitted')).to.match(
      /^True AdministratorRequired: .*"blue" is an address space/,
    );
    expect(world.condition('blue', 'UsedByOthers')).to.match(
      /^True NamespaceNotServed: .*some of its addresses: blue\.a \(namespace a\)\. Add the namespaces to the pool, /,
    );
    expect(world.events.join('\n')).to.match(/AddressPool blue AddressPoolUsedByOthers: .*blue\.a/);
    expect(world.directory.resolve(claimOf('a/vm.data', 'a/blue'))).to.have.property('kind', 'served');
    expect(world.pools.get('blue.a')?.spec.subnets).to.deep.equal([{ cidr: CIDR }]);
    world.putNads(prod('a/blue', '10.8.0.0/24'));
    await world.settle();
    expect(world.condition('blue.a', 'NotPermitted')).to.equal('none');
    expect(world.condition('blue', 'UsedByOthers')).to.equal('none');
  });

  it('are drained from such a pool while the administrator enforces ownership', async () => {
    world.putNads(prod('a/blue'));
    await world.settle();
    world.putPool(ADMIN);
    world.enforceAddressOwnership = true;
    await world.settle(world.elect());
    expect(world.pools.get('blue.a')?.spec.subnets).to.deep.equal([{ cidr: CIDR, draining: [CIDR] }]);
    world.enforceAddressOwnership = false;
    await world.settle(world.elect());
    expect(world.pools.get('blue.a')?.spec.subnets).to.deep.equal([{ cidr: CIDR }]);
  });

  it('are shared by NADs of several namespaces with equal subnets, and the older pool names the younger', async () => {
    world.putNads(prod('a/blue'));
    await world.settle();
    world.putNads(prod('b/blue'));
    await world.settle();
    expect(world.pools.get('blue.b')?.spec.subnets).to.deep.equal([{ cidr: CIDR }]);
    expect(world.condition('blue.b', 'NotPermitted')).to.equal('none');
    expect(world.condition('blue.a', 'UsedByOthers'))
      .to.include('blue.b (namespace b)')
      .and.to.include('Add the namespaces to "namespaces" in the NAD of network blue in namespace a, ');
    expect(world.condition('blue.b', 'UsedByOthers')).to.equal('none');
  });

  it('are in no pool of another namespace with other subnets, nor with equal ones while ownership is enforced', async () => {
    world.enforceAddressOwnership = true;
    const sync = world.elect();
    world.putNads(prod('a/blue'));
    await world.settle(sync);
    world.putNads(prod('b/blue'), prod('c/blue', '10.9.0.0/16'));
    await world.settle(sync);
    expect([...world.pools.list()].map(({ metadata }) => metadata.name)).to.deep.equal(['blue.a']);
  });

  it('are looked for in slices, so that other work of the process gets its turn', async () => {
    const namespaces = ['a', 'b', 'c', 'd', 'e', 'f'];
    world.putNads(...namespaces.map((namespace, n) => prod(`${namespace}/blue`, `10.9.${n}.0/24`)));
    await world.settle();
    world.putPool(adminPool('other', { network: 'red', addressSpace: 'blue', cidr: '10.7.0.0/16', namespaces: ['a'] }));
    const counter = new TurnCounter();
    const reads = new Map<number, number>();
    const onRead = () => void reads.set(counter.turns, (reads.get(counter.turns) ?? 0) + 1);
    const poolsIn = world.directory.poolsIn.bind(world.directory);
    world.directory.poolsIn = (space) => poolsIn(space).map((pool) => slowPool(pool, world.clock, onRead));
    for (const key of ['a/blue', 'blue.a', 'other']) {
      reads.clear();
      await world.sync(key);
      expect(Math.max(...reads.values()), key).to.equal(2);
    }
    counter.stop();
  });
});
