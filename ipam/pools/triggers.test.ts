import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { TestSource } from '../../kube/testing/test-informer.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { adminPool, claimOf, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { parseAddress } from '../../addressing/address/address.js';
import { PoolsWorld } from './testing/pools-world.js';
import { allPoolKeys, followPools, turnsOfPools } from './triggers.js';

describe('the pools and networks that are synced', () => {
  let world: PoolsWorld;
  let added: string[];
  const pools = new TestSource<ObjectChange<AddressPool>>();
  const networks = new TestSource<ObjectChange<ParsedNad>>();
  const served = new TestSource<void>();
  const claims = new TestSource<ObjectChange<ReturnType<typeof claimOf>>>();
  const pods = new TestSource<string>();

  beforeEach(() => {
    world = new PoolsWorld();
    added = [];
    const { book, directory, usage } = world;
    const add = (keys: readonly string[]) => void added.push(...keys);
    const nads = { onChange: networks.onChange.bind(networks), onServed: served.onChange.bind(served) };
    directory.follow({ pools, networks: nads });
    followPools({ pools, networks: nads, claims, book, pods, directory, usage, cache: world.pools }, add);
  });

  /** The keys that were added since the last call, each once, when all changes are settled. */
  async function keys(): Promise<string[]> {
    await Promise.resolve();
    return [...new Set(added.splice(0))].sort();
  }

  const derived = () => adminPool('blue.vms', { nadNamespace: 'vms', cidr: '10.9.0.0/24' });

  it('take turns by the namespace of the NADs, and those of administrators are one group', () => {
    world.putPool(derived());
    world.putPool(adminPool('lab', { cidr: '10.8.0.0/24' }));
    const turns = ['vms/blue', 'blue.vms', 'lab', 'gone.vms'].map(turnsOfPools(world.pools));
    expect(turns).to.deep.equal(['vms', 'vms', '', '?']);
  });

  it('on a change of a pool are the pool, its NADs, and pools that compete with it, but not those of another tenant', async () => {
    world.putPool(adminPool('other', { cidr: '10.8.0.0/24' }));
    world.nads.set(nad('tenant/blue', holdfastConfig()));
    await keys();
    const object = world.putPool(derived());
    pools.tell({ type: 'added', object });
    expect(await keys()).to.deep.equal(['blue.vms', 'other', 'vms/blue']);
  });

  it("on a change of an administrator's pool are the networks in its address space, with and without a pool", async () => {
    const lan = { addressSpace: 'lan' };
    world.putNads(nad('tenant/red', holdfastConfig(lan, 'red')), nad('tenant/green', holdfastConfig({}, 'green')));
    await keys();
    pools.tell({ type: 'added', object: world.putPool(adminPool('p', lan)) });
    expect(await keys()).to.deep.equal(['p', 'red.tenant', 'tenant/red']);
  });

  it("on a change of a pool's status are the pool alone", async () => {
    const before = world.putPool(adminPool('p'));
    world.putPool(adminPool('q', { born: 2 }));
    await keys();
    pools.tell({
      type: 'changed',
      before,
      object: { ...before, metadata: { ...before.metadata, resourceVersion: '9' } },
    });
    expect(await keys()).to.deep.equal(['p']);
  });

  it('on a NAD with another network are both networks and their pools', async () => {
    world.putPool(adminPool('p'));
    const before = nad('vms/n', holdfastConfig());
    const object = nad('vms/n', holdfastConfig({}, 'red'));
    world.putNads(before);
    await keys();
    world.putNads(object);
    networks.tell({ type: 'changed', before, object });
    expect(await keys()).to.deep.equal(['p', 'vms/blue', 'vms/red']);
  });

  it('on the first sync of NADs are all networks, even if there are no NADs', async () => {
    world.areNadsServed = false;
    world.putPool(derived());
    await keys();
    world.areNadsServed = true;
    served.tell();
    expect(await keys()).to.deep.equal(['blue.vms']);
  });

  it('on a lease are its pool, and other pools of the address space with its address', async () => {
    world.putPool(adminPool('p'));
    world.putPool(adminPool('wide', { cidr: '10.0.0.0/8', namespaces: ['x'] }));
    world.putPool(adminPool('apart', { cidr: '10.9.0.0/24' }));
    world.putPool(adminPool('elsewhere', { addressSpace: 'lan' }));
    await keys();
    world.lease('p', '10.0.0.5', 'vms/c');
    expect(await keys()).to.deep.equal(['p', 'wide']);
  });

  it('on the release of a lease include the network whose derived pool may wait for it', async () => {
    world.putPool(derived());
    world.lease('blue.vms', '10.9.0.5', 'vms/c');
    await keys();
    world.release('10.9.0.5');
    expect(await keys()).to.deep.equal(['blue.vms', 'vms/blue']);
  });

  it('on the release of a lease include other pools with its address, in which it may drain', async () => {
    world.putPool(derived());
    world.putPool(adminPool('p', { cidr: '10.9.0.0/16' }));
    world.lease('blue.vms', '10.9.0.5', 'vms/c');
    await keys();
    world.release('10.9.0.5');
    expect(await keys()).to.include('p');
  });

  it('on the end of a restore hold are the pools with its address, whose free addresses it changes', async () => {
    world.putPool(adminPool('p'));
    world.putPool(adminPool('apart', { cidr: '10.9.0.0/24' }));
    const address = parseAddress('10.0.0.5');
    world.book.addRestoreHold('blue', address);
    await keys();
    world.book.removeRestoreHold('blue', address);
    expect(await keys()).to.deep.equal(['p']);
  });

  it('on the start or stop of a VM are the pools of its claim whose counts change', async () => {
    world.putPool(adminPool('p'));
    world.lease('p', '10.0.0.5', 'vms/c');
    await world.settle();
    await keys();
    world.running.add('vms/c');
    pods.tell('vms/c');
    expect(await keys()).to.deep.equal(['p']);
    claims.tell({ type: 'changed', object: claimOf('vms/c') });
    expect(await keys()).to.deep.equal([]);
    await world.settle();
    expect(world.pools.get('p')?.status).to.include({ leased: 1, heldByStopped: 0 });
  });

  it('at the start are all', () => {
    world.putPool(derived());
    world.putPool(adminPool('p', { network: 'red' }));
    world.putNads(nad('vms/n', holdfastConfig()), nad('tenant/n', holdfastConfig({}, 'green')));
    expect(allPoolKeys(world.pools, world.nads).sort()).to.deep.equal(['blue.vms', 'p', 'tenant/green', 'vms/blue']);
  });
});
