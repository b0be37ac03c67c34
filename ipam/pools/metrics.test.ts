import { expect } from 'chai';
import type { AddressPoolSpec } from '../../api/address-pool.js';
import { POOL_NAD_NAMESPACE } from '../../api/names.js';
import { MAX_DERIVED_POOLS, PoolsWorld } from './testing/pools-world.js';
import { MAX_DERIVED_POOLS_OF_NAMESPACE } from './metrics.js';

describe('the metrics of pools', () => {
  let world: PoolsWorld;

  beforeEach(() => {
    world = new PoolsWorld();
  });

  function put(name: string, spec: Partial<AddressPoolSpec> = {}, namespace?: string): void {
    const annotations = namespace === undefined ? {} : { [POOL_NAD_NAMESPACE]: namespace };
    const subnets = [{ cidr: '10.0.0.0/29' }];
    world.putPool({ metadata: { name, annotations }, spec: { network: name, subnets, ...spec } });
  }

  /** @returns the values of the gauges of a pool, as `ipv4 free` */
  async function series(pool = 'blue'): Promise<Record<string, number>> {
    const gauges = (await world.registry.registry.getMetricsAsJSON()).filter(({ name }) => name.includes('ipam_pool_'));
    return Object.fromEntries(
      gauges.flatMap(({ name, values }) =>
        values
          .filter(({ labels }) => labels.pool === pool)
          .map(({ labels: { family, state = name.split('_')[3] }, value }) => [`${family} ${state}`, value]),
      ),
    );
  }

  async function poolsWithSeries(): Promise<string[]> {
    const gauge = world.registry.registry.getSingleMetric('holdfast_ipam_pool_capacity_addresses');
    return (await gauge!.get()).values.map(({ labels }) => (labels as { pool: string }).pool);
  }

  it('count the addresses of each family by state, and their sum is the capacity', async () => {
    put('blue', { subnets: [{ cidr: '10.0.0.0/29', reserved: ['10.0.0.6'] }, { cidr: 'fd00::/64' }] });
    world.lease('blue', '10.0.0.1', 'vms/vm1');
    world.lease('blue', 'fd00::1', 'vms/vm2');
    world.release('fd00::1');
    world.lease('blue', '10.0.0.2', 'vms/vm3');
    world.quarantine('10.0.0.2');
    await world.settle();
    expect(await series()).to.deep.equal({
      'ipv4 allocated': 1,
      'ipv4 cooling': 0,
      'ipv4 free': 3,
      'ipv4 reserved': 1,
      'ipv4 quarantined': 1,
      'ipv4 capacity': 6,
      'ipv4 available': 3,
      'ipv6 allocated': 0,
      'ipv6 cooling': 1,
      'ipv6 free': Number.MAX_SAFE_INTEGER,
      'ipv6 reserved': 0,
      'ipv6 quarantined': 0,
      'ipv6 capacity': Number.MAX_SAFE_INTEGER,
      'ipv6 available': Number.MAX_SAFE_INTEGER,
    });
  });

  it('count sticky addresses as available, because the next workload gets one', async () => {
    const subnets = [{ cidr: '10.0.0.0/30' }];
    put('blue', { subnets });
    world.lease('blue', '10.0.0.1', 'vms/vm1');
    world.lease('blue', '10.0.0.2', 'vms/vm2');
    world.release('10.0.0.1');
    await world.settle();
    expect(await series()).to.include({ 'ipv4 free': 0, 'ipv4 cooling': 1, 'ipv4 available': 0 });
    put('blue', { subnets, stickyMAC: { ttl: '24h' } });
    await world.settle();
    expect(await series()).to.include({ 'ipv4 free': 0, 'ipv4 cooling': 1, 'ipv4 available': 1 });
  });

  it('have no series for a family that the pool lacks, or no longer has', async () => {
    put('blue', { subnets: [{ cidr: '10.0.0.0/29' }, { cidr: 'fd00::/64' }] });
    await world.settle();
    put('blue');
    await world.settle();
    expect(Object.keys(await series()).filter((key) => key.startsWith('ipv6'))).to.deep.equal([]);
  });

  it('leave out a pool that sets publishMetrics to false, also later', async () => {
    put('red', { publishMetrics: false });
    put('blue');
    await world.settle();
    expect(await poolsWithSeries()).to.deep.equal(['blue']);
    put('blue', { publishMetrics: false });
    await world.settle();
    expect(await poolsWithSeries()).to.deep.equal([]);
  });

  it('disappear with the pool, and at the end of the term', async () => {
    put('blue');
    put('red');
    await world.settle();
    world.deletePool('blue');
    await world.sync('blue');
    await world.sync('blue');
    expect(await poolsWithSeries()).to.deep.equal(['red']);
    world.metrics.clear();
    expect(await poolsWithSeries()).to.deep.equal([]);
  });

  it('are bounded for pools that are derived from NADs, in each namespace and in all of them, and never for those of administrators', async () => {
    const names = (of: string) => Array.from({ length: MAX_DERIVED_POOLS }, (_, index) => `${of}${index}`);
    for (const name of names('first')) put(name, {}, 'tenant-a');
    for (const name of names('second')) put(name, {}, 'tenant-b');
    for (const name of names('admin')) put(name);
    for (const pool of world.pools.list()) await world.sync(pool.metadata.name);
    const reported = await poolsWithSeries();
    const of = (prefix: string) => reported.filter((name) => name.startsWith(prefix)).length;
    expect([of('first'), of('second'), of('admin')]).to.deep.equal([
      MAX_DERIVED_POOLS_OF_NAMESPACE,
      MAX_DERIVED_POOLS - MAX_DERIVED_POOLS_OF_NAMESPACE,
      MAX_DERIVED_POOLS,
    ]);
    const text = await world.registry.registry.metrics();
    expect(text).to.include(`holdfast_ipam_pools_left_out ${MAX_DERIVED_POOLS}\n`);
  });

  it('are those of the oldest pools of a namespace with more than it may have, in whichever order a leader sees them', async () => {
    const names = Array.from({ length: MAX_DERIVED_POOLS_OF_NAMESPACE + 1 }, (_, index) => `net${index + 10}`);
    for (const name of names) put(name, {}, 'tenant-a');
    for (const order of [names, names.toReversed()]) {
      const sync = world.elect();
      for (const name of order) await sync(name);
      expect(await poolsWithSeries()).to.have.members(names.slice(0, -1));
      world.metrics.clear();
    }
  });

  it('appear for a pool that was left out once another one of its namespace is gone', async () => {
    const names = Array.from({ length: MAX_DERIVED_POOLS_OF_NAMESPACE + 1 }, (_, index) => `net${index + 10}`);
    for (const name of names) put(name, {}, 'tenant-a');
    for (const name of names) await world.sync(name);
    world.metrics.forget('net10');
    expect(await poolsWithSeries()).to.have.members(names.slice(1));
  });

  it('stay those of one pool if a derived one replaces that of an administrator between two syncs, or the other way round', async () => {
    for (const namespace of [undefined, 'vms', 'others', undefined]) {
      put('blue', {}, namespace);
      await world.settle();
      const lines = (await world.registry.registry.metrics()).split('\n');
      const free = lines.filter((line) => line.includes('pool="blue"') && line.includes('state="free"'));
      expect(free).to.have.lengthOf(1);
      expect(free[0]).to.include(`nad_namespace="${namespace ?? ''}"`);
    }
  });

  it('name the namespace of the NADs of a derived pool, whose owner must act, and lose all series with the pool', async () => {
    put('derived', {}, 'vms');
    put('admin');
    await world.settle();
    const lines = async () => (await world.registry.registry.metrics()).split('\n');
    const free = (await lines()).filter((line) => line.includes('state="free"'));
    expect(free.filter((line) => line.includes('nad_namespace="vms"'))).to.have.lengthOf(1);
    expect(free.filter((line) => line.includes('nad_namespace=""'))).to.have.lengthOf(1);
    put('derived', { publishMetrics: false }, 'vms');
    await world.settle();
    expect((await lines()).filter((line) => line.includes('pool="derived"'))).to.deep.equal([]);
  });
});
