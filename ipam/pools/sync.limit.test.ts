import { expect } from 'chai';
import { TransportError } from '../../kube/errors.js';
import { apiError } from '../../test/api-errors.js';
import { holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';

const withPool = (key: string, n: number) =>
  nad(key, holdfastConfig({ subnets: [{ cidr: `10.${n}.0.0/24` }] }, `n${n}`), n);

describe('the number of pools that are derived from NADs of one namespace', () => {
  let world: PoolsWorld;

  beforeEach(() => {
    world = new PoolsWorld();
    world.maxDerivedPools = 2;
    world.putNads(...[1, 2, 3].map((n) => withPool(`vms/n${n}`, n)));
  });

  const poolsOf = (namespace: string) =>
    world.pools.keys().filter((name) => name.endsWith(`.${namespace}`)).sort(); // oxfmt-ignore

  it('is limited, and an event on the NAD says what to do', async () => {
    await world.settle(world.elect());
    expect(poolsOf('vms')).to.deep.equal(['n1.vms', 'n2.vms']);
    expect(world.events).to.deep.equal([
      'NetworkAttachmentDefinition n3 NetworkAttachmentNotPermitted: AddressPool n3.vms is not created: namespace vms has 2 derived ' +
        'AddressPools, the most that it may have: delete NADs that are no longer needed, or ask the administrator for an AddressPool or a ' +
        'higher --max-derived-pools-per-namespace of holdfast ipam',
    ]);
  });

  it('is told again while it lasts, because the API server deletes an event after an hour', async () => {
    const sync = world.elect();
    await world.settle(sync);
    for (const [minutes, events] of [
      [29, 1],
      [31, 2],
      [45, 2],
      [62, 3],
    ] as const) {
      world.clock.advanceTo(Date.UTC(2026, 0, 1) + minutes * 60_000);
      await sync('vms/n3');
      expect(world.events, `after ${minutes} minutes`).to.have.length(events);
    }
  });

  it('includes pools that are being created', async () => {
    const sync = world.elect();
    await Promise.all([1, 2, 3].map((n) => sync(`vms/n${n}`)));
    expect(poolsOf('vms')).to.deep.equal(['n1.vms', 'n2.vms']);
  });

  it('includes a pool whose creation got no answer until it is created again', async () => {
    const sync = world.elect();
    world.failure = new TransportError('deadline', 'no answer');
    await sync('vms/n1').catch(() => undefined);
    for (const n of [2, 3]) await sync(`vms/n${n}`);
    expect(poolsOf('vms')).to.deep.equal(['n2.vms']);
    await sync('vms/n1');
    expect(poolsOf('vms')).to.deep.equal(['n1.vms', 'n2.vms']);
  });

  it('no longer includes such a pool when its NAD is deleted', async () => {
    const sync = world.elect();
    world.failure = new TransportError('deadline', 'no answer');
    await sync('vms/n1').catch(() => undefined);
    world.dropNad('vms/n1');
    for (const n of [1, 2, 3]) await sync(`vms/n${n}`);
    expect(poolsOf('vms')).to.deep.equal(['n2.vms', 'n3.vms']);
  });

  it('does not include a pool that the API server rejected', async () => {
    const sync = world.elect();
    world.failure = apiError(403, 'Forbidden', 'Forbidden', 'n1.vms');
    await sync('vms/n1').catch(() => undefined);
    for (const n of [2, 3]) await sync(`vms/n${n}`);
    expect(poolsOf('vms')).to.deep.equal(['n2.vms', 'n3.vms']);
  });

  it('is counted again after a minute, so that a NAD gets the place of another one', async () => {
    const sync = world.elect();
    await world.settle(sync);
    expect(await sync('vms/n3')).to.deep.equal({ requeueAfterMs: 60_000 });
    world.dropNad('vms/n1');
    await world.settle(sync);
    world.clock.advanceTo(world.clock.now() + 600_000);
    await world.settle(sync);
    expect(poolsOf('vms')).to.deep.equal(['n2.vms', 'n3.vms']);
  });

  it('does not concern other namespaces, global ones, and pools that exist', async () => {
    await world.settle();
    world.putNads(...[4, 5, 6].map((n) => withPool(`default/n${n}`, n)), withPool('lab/n7', 7));
    await world.settle(world.elect());
    expect(poolsOf('vms')).to.have.length(3);
    expect(poolsOf('default')).to.have.length(3);
    expect(poolsOf('lab')).to.have.length(1);
  });
});
