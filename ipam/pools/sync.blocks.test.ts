import { expect } from 'chai';
import type { PoolBlocks } from '../../api/address-pool.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';

describe('a pool with blocks that nodes have', () => {
  let world: PoolsWorld;
  let status: PoolBlocks;
  let left: number;

  beforeEach(() => {
    world = new PoolsWorld();
    status = { total: 4, full: 1, lent: 2, current: '10.0.0.0/26' };
    left = 0;
    world.blocks = { statusOf: () => status, countDelayingDeletion: () => left };
  });

  /** Syncs as a new leader, after a while. */
  async function look(): Promise<PoolBlocks | undefined> {
    world.clock.advanceTo(world.clock.now() + 5_000);
    await world.elect()('blue');
    return world.pools.get('blue')?.status?.blocks;
  }

  it('reports how many blocks nodes have', async () => {
    world.putPool(adminPool('blue'));
    expect(await look()).to.deep.equal(status);
    status = { ...status, lent: 3 };
    expect(await look()).to.deep.equal(status);
  });

  it('stops reporting the current block of claims once there is none', async () => {
    world.putPool(adminPool('blue'));
    await look();
    status = { total: 4, full: 4, lent: 2 };
    expect(await look()).to.deep.equal(status);
  });

  it('stops reporting blocks once no node has any', async () => {
    world.putPool(adminPool('blue'));
    await look();
    world.blocks = undefined;
    expect(await look()).to.equal(undefined);
  });

  it('is deleted only after its blocks', async () => {
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
