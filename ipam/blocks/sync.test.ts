import { expect } from 'chai';
import { BlockRelease } from '../../api/address-block.js';
import { TransportError } from '../../kube/errors.js';
import { blockOf } from '../../test/objects/block-objects.js';
import { BlockSyncWorld } from './testing/block-sync-world.js';
import { adminPool } from '../../test/objects/pool-objects.js';

const FIRST = '10.0.0.64/26';
const DELAY = 180_000;

describe('the sync of blocks', () => {
  let world: BlockSyncWorld;

  beforeEach(() => {
    world = new BlockSyncWorld();
    world.putPool(adminPool('blue'));
    world.putNode('n1');
  });

  /** Node n1 has a block of which it uses nothing. */
  async function lendAndEmpty(): Promise<void> {
    world.lease('10.0.0.3', 'n1');
    await world.settle();
    world.free('10.0.0.3');
  }

  it('assigns one block to the node of a lease of a pod', async () => {
    world.lease('10.0.0.3', 'n1');
    await world.settle();
    expect(world.lent).to.deep.equal([`${FIRST} n1`]);
    expect(world.writes).to.deep.equal([`create ${FIRST} n1`]);
    expect(world.logged).to.have.lengthOf(1);
    expect(world.logged[0]).to.include('the blocks of the node have 0 free addresses, fewer than 8');
  });

  it('assigns no block for claims or to nodes that do not match the pool', async () => {
    world.putPool(adminPool('blue', { nodeSelector: { rack: '1' } }));
    world.putNode('n2', { rack: '1', zone: 'a' });
    world.putNode('n4', { rack: '2' });
    world.nodes.set({ metadata: { name: 'n5', labels: { rack: '1' }, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    world.lease('10.0.0.7', 'n4');
    world.lease('10.0.0.8', 'n5');
    world.lease('10.0.0.3');
    world.lease('10.0.0.4', 'n1');
    world.lease('10.0.0.5', 'n2');
    world.lease('10.0.0.6', 'n3');
    await world.settle();
    expect(world.lent).to.deep.equal([`${FIRST} n2`]);
  });

  it('assigns no block of a pool with one slice', async () => {
    world.putPool(adminPool('blue', { cidr: '10.0.0.0/26' }));
    world.lease('10.0.0.3', 'n1');
    await world.settle();
    expect(world.lent).to.deep.equal([]);
  });

  it('releases and deletes a block that no pod needs', async () => {
    await lendAndEmpty();
    expect(await world.sync()).to.deep.equal({ requeueAfterMs: DELAY });
    world.advance(DELAY);
    await world.settle();
    expect(world.lent).to.deep.equal([`${FIRST} n1 marked-for-release`]);
    world.answer(FIRST, BlockRelease.Ready);
    await world.settle();
    expect(world.lent).to.deep.equal([]);
    expect(world.blocks.ofPool('blue')).to.deep.equal([]);
    const steps = world.writes.slice(1).map((write) => write.replace('blue.10-0-0-64-26', 'it'));
    expect(steps).to.deep.equal([
      'patch-status it marked-for-release',
      'patch-status it released',
      'delete it',
      'patch it',
    ]);
  });

  it('starts its delays anew in a new term of leadership', async () => {
    await lendAndEmpty();
    await world.sync();
    world.advance(DELAY);
    world.elect();
    await world.settle();
    expect(world.lent).to.deep.equal([`${FIRST} n1`]);
  });

  it('does nothing while the gate is closed', async () => {
    await lendAndEmpty();
    world.isGateOpen = false;
    expect(await world.sync()).to.equal(undefined);
    world.advance(DELAY);
    expect(await world.sync()).to.equal(undefined);
    world.isGateOpen = true;
    expect(await world.sync(), 'no time has passed for it').to.deep.equal({ requeueAfterMs: DELAY });
    expect(world.writes).to.deep.equal([`create ${FIRST} n1`]);
  });

  it('syncs a pool at most five times a second, and once a second if the last sync wrote nothing', async () => {
    world.lease('10.0.0.3', 'n1');
    await world.sync();
    world.advance(150);
    expect(await world.syncAtOnce()).to.deep.equal({ earlyByMs: 50 });
    world.advance(50);
    expect(await world.syncAtOnce()).to.equal(undefined);
    world.advance(200);
    expect(await world.syncAtOnce()).to.deep.equal({ earlyByMs: 800 });
  });

  it('does not wait longer after the wall clock is set back', async () => {
    await world.sync();
    world.clock.setBack(3_600_000);
    world.advance(1_000);
    world.lease('10.0.0.3', 'n1');
    await world.syncAtOnce();
    expect(world.lent).to.deep.equal([`${FIRST} n1`]);
  });

  it('stores a block that another leader created, and syncs again soon', async () => {
    world.lease('10.0.0.3', 'n1');
    world.create(blockOf(FIRST, 0, { node: 'n9' }));
    expect(await world.sync()).to.deep.equal({ requeueAfterMs: 200 });
    expect(world.conflicts).to.deep.equal(['lend']);
    expect(world.blocks.ofPool('blue').map(({ node }) => node)).to.deep.equal(['n9']);
    await world.settle();
    expect(world.lent).to.deep.equal(['10.0.0.128/26 n1', `${FIRST} n9 marked-for-release`]);
  });

  it('assigns another slice if an invalid object has the name of a block', async () => {
    world.lease('10.0.0.3', 'n1');
    const { spec, ...rest } = blockOf(FIRST, 0);
    world.create({ ...rest, spec: { ...spec, cidr: '10.0.0.128/26' } });
    expect(await world.sync()).to.deep.equal({ requeueAfterMs: 5_000 });
    expect(world.logged.join()).to.include('is not a valid AddressBlock');
    await world.sync();
    expect(world.lent.sort()).to.deep.equal(['10.0.0.128/26 n1', '10.0.0.128/26 n1']);
  });

  it('does not overwrite a newer release state', async () => {
    await lendAndEmpty();
    await world.sync();
    world.advance(DELAY);
    await world.sync();
    world.answer(FIRST, BlockRelease.Ready);
    world.beforeWrite = (write) => {
      world.beforeWrite = () => undefined;
      expect(write).to.include('released');
      world.answer(FIRST, BlockRelease.Refused);
    };
    await world.sync();
    expect(world.conflicts).to.deep.equal(['reclaim']);
    expect(world.lent).to.deep.equal([`${FIRST} n1 do-not-release`]);
    await world.settle();
    expect(world.lent).to.deep.equal([`${FIRST} n1`]);
  });

  it('performs the other writes if one fails, and throws its error', async () => {
    world.putNode('n2');
    world.lease('10.0.0.3', 'n1');
    world.lease('10.0.0.4', 'n2');
    world.beforeWrite = (write) => {
      if (write.includes('n1')) throw new TransportError('broken', 'cut off');
    };
    let thrown: unknown;
    await world.sync().catch((error: unknown) => (thrown = error));
    expect(thrown).to.be.instanceOf(TransportError);
    expect(world.lent).to.deep.equal(['10.0.0.128/26 n2']);
    world.beforeWrite = () => undefined;
    await world.settle();
    expect(world.lent).to.have.lengthOf(2);
  });

  describe('for a deleted node', () => {
    beforeEach(async () => {
      await lendAndEmpty();
      world.nodes.delete('n1');
      await world.settle();
      world.advance(DELAY);
    });

    it('reclaims its block without an answer', async () => {
      expect(world.lent).to.deep.equal([`${FIRST} n1 marked-for-release`]);
      world.dropNode('n1');
      await world.settle();
      expect(world.lent).to.deep.equal([]);
    });

    it('reclaims no block of a node that the API server has', async () => {
      expect(await world.sync()).to.deep.equal({ requeueAfterMs: 5_000 });
      expect(world.lent).to.deep.equal([`${FIRST} n1 marked-for-release`]);
      world.putNode('n1');
      world.lease('10.0.0.3', 'n1');
      await world.settle();
      expect(world.lent).to.deep.equal([`${FIRST} n1`]);
    });
  });

  it('reclaims blocks that are no longer slices, and assigns current slices', async () => {
    world.lease('10.0.0.3', 'n1');
    await world.settle();
    world.putPool(adminPool('blue', { blockSize: { ipv4: 27 } }));
    await world.settle();
    expect(world.lent).to.deep.equal(['10.0.0.32/27 n1', `${FIRST} n1 marked-for-release`]);
    world.answer(FIRST, BlockRelease.Ready);
    await world.settle();
    expect(world.lent).to.deep.equal(['10.0.0.32/27 n1']);
  });

  it('reclaims a block that is no longer a slice even if some pod always uses it', async () => {
    world.lease('10.0.0.3', 'n1');
    await world.settle();
    world.lease('10.0.0.70', 'n1');
    world.lease('10.0.0.71', 'n1');
    world.putPool(adminPool('blue', { blockSize: { ipv4: 27 } }));
    world.free('10.0.0.70');
    await world.settle();
    expect(world.lent, 'its node picks from it no more').to.include(`${FIRST} n1 going`);
    world.free('10.0.0.71');
    await world.settle();
    world.answer(FIRST, BlockRelease.Ready);
    await world.settle();
    expect(world.lent).to.deep.equal(['10.0.0.32/27 n1']);
  });

  it('reclaims a deleted block once its node answers ready-for-release', async () => {
    await lendAndEmpty();
    world.delete(FIRST);
    await world.settle();
    expect(world.lent).to.deep.equal([`${FIRST} n1 marked-for-release going`]);
    world.answer(FIRST, BlockRelease.Ready);
    await world.settle();
    expect(world.lent).to.deep.equal([]);
  });

  it('reclaims all blocks of a pool that now has one slice', async () => {
    world.lease('10.0.0.3', 'n1');
    await world.settle();
    world.putPool(adminPool('blue', { cidr: '10.0.0.64/26' }));
    await world.settle();
    expect(world.lent).to.deep.equal([`${FIRST} n1 marked-for-release`]);
  });

  it('marks the blocks of a pool that is being deleted, and deletes them once nothing is leased', async () => {
    world.putNode('n2');
    world.lease('10.0.0.3', 'n1');
    world.lease('10.0.0.4', 'n2');
    await world.settle();
    world.lease('10.0.0.65', 'n1');
    world.putPool(adminPool('blue', { deleting: true }));
    await world.settle();
    expect(world.lent).to.deep.equal(['10.0.0.128/26 n2 marked-for-release', `${FIRST} n1`]);
    for (const address of ['10.0.0.3', '10.0.0.4', '10.0.0.65']) world.free(address);
    await world.settle();
    expect(world.lent).to.deep.equal([]);
  });

  it('deletes the blocks of a deleted pool without an answer', async () => {
    await lendAndEmpty();
    world.dropPool('blue');
    await world.settle();
    expect(world.lent).to.deep.equal([]);
    expect(await world.sync()).to.equal(undefined);
  });

  it('deletes no block of a pool that the API server has', async () => {
    await lendAndEmpty();
    world.pools.delete('blue');
    world.directory.changed();
    expect(await world.sync()).to.deep.equal({ requeueAfterMs: 5_000 });
    expect(world.lent).to.deep.equal([`${FIRST} n1`]);
  });

  it('marks a block for claims that find no other free address', async () => {
    await lendAndEmpty();
    for (const base of [0, 128, 192]) {
      for (let host = 0; host < 64; host++) if (![0, 255].includes(base + host)) world.lease(`10.0.0.${base + host}`);
    }
    world.lease('10.0.0.64', 'n1');
    await world.settle();
    world.shortages.noteShortage('blue', 4, world.clock.now());
    await world.settle();
    expect(world.lent, 'it is used').to.deep.equal([`${FIRST} n1`]);
    world.free('10.0.0.64');
    await world.settle();
    expect(world.lent).to.deep.equal([`${FIRST} n1 marked-for-release`]);
    world.answer(FIRST, BlockRelease.Ready);
    await world.settle();
    expect(world.lent).to.deep.equal([]);
  });
});
