import { expect } from 'chai';
import type { PoolBlocks } from '../../api/address-pool.js';
import { adminPool } from '../../test/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';

describe('a pool of which nodes are lent blocks', () => {
  let world: PoolsWorld;
  let status: PoolBlocks;
  let left: number;

  beforeEach(() => {
    world = new PoolsWorld();
    status = { total: 4, full: 1, lent: 2, current: '10.0.0.0/26' };
    left = 0;
    world.blocks = { statusOf: () => status, holdingUp: () => left };
  });

  /** As a new leader, after a while. */
  async function look(): Promise<PoolBlocks | undefined> {
    world.clock.advanceTo(world.clock.now() + 5_000);
    await world.elect()('blue');
    return world.pools.get('blue')?.status?.blocks;
  }

  it('says how many', async () => {
    world.putPool(adminPool('blue'));
    expect(await look()).to.deep.equal(status);
    status = { ...status, lent: 3 };
    expect(await look()).to.deep.equal(status);
  });

  it('says no more from where claims are served once that is nowhere', async () => {
    world.putPool(adminPool('blue'));
    await look();
    status = { total: 4, full: 4, lent: 2 };
    expect(await look()).to.deep.equal(status);
  });

  it('says nothing of blocks any more once no node is lent any', async () => {
    world.putPool(adminPool('blue'));
    await look();
    world.blocks = undefined;
    expect(await look()).to.equal(undefined);
  });

  it('goes only after its blocks', async () => {
    world.putPool(adminPool('blue'));
    await look();
    const { metadata } = world.pools.get('blue') ?? {};
    world.putPool({
      ...adminPool('blue', { deleting: true }),
      metadata: { ...metadata, name: 'blue', deletionTimestamp: '2026-02-02T00:00:00Z' },
    });
    left = 1;
    await look();
    expect(world.pools.get('blue')).not.to.equal(undefined);
    left = 0;
    await look();
    expect(world.pools.get('blue')).to.equal(undefined);
  });
});
