import { expect } from 'chai';
import type { AddressBlock } from '../../api/address-block.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { KubeObject } from '../../api/meta.js';
import { Cache } from '../../kube/informers/cache.js';
import { TestInformer } from '../../kube/testing/test-informer.js';
import { silentLogger } from '../../kube/log.js';
import { Metrics } from '../../process/metrics.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import { ADDRESS_POOL_WATCH } from '../../cluster/watch-specs.js';
import { ADDRESS_BLOCK_WATCH } from '../../addressing/directory/create-directory.js';
import { blockOf } from '../../test/objects/block-objects.js';
import { compiledPool, leaseOf } from '../../test/objects/lease-objects.js';
import { ManualClock } from '../../test/manual-clock.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { readBlock } from '../../addressing/block/block.js';
import { LeaseBook } from '../leases/lease-book.js';
import { PoolUsage } from '../pools/usage.js';
import type { Views } from '../views.js';
import { BlockReconciler } from './block-reconciler.js';

describe('the block reconciler', () => {
  let feeds: Map<object, TestInformer<KubeObject>>;
  let book: LeaseBook;
  let blocks: BlockReconciler;
  let metrics: Metrics;
  let isGateOpen: boolean;

  beforeEach(() => {
    feeds = new Map();
    book = new LeaseBook();
    metrics = new Metrics();
    isGateOpen = true;
    const informers = { get: (watched: object) => feedOf(watched) };
    const pools = feedOf(ADDRESS_POOL_WATCH) as unknown as TestInformer<AddressPool>;
    const directory = new PoolDirectory({ pools: pools.cache, networks: new Cache() });
    const views = { watched: { pools }, book, directory, usage: new PoolUsage(book, () => true) } as unknown as Views;
    const clock = new ManualClock(0);
    blocks = new BlockReconciler({
      context: { client: {}, informers, clock, log: silentLogger, metrics } as never,
      config: { blockMinFree: 8, blockMaxFree: 72, excessReleaseDelayMs: 1_000 },
      views,
      gate: { isOpen: () => isGateOpen },
    });
  });

  function feedOf(watched: object): TestInformer<KubeObject> {
    const feed = feeds.get(watched) ?? new TestInformer<KubeObject>();
    feeds.set(watched, feed);
    return feed;
  }

  function tell(block: AddressBlock): void {
    feedOf(ADDRESS_BLOCK_WATCH).set(readBlock(block));
  }

  it('counts blocks for the status of a pool, and names the slice from which claims get addresses', () => {
    const pool = compiledPool({ cidr: '10.0.0.0/28', blockSize: { ipv4: 30 } });
    expect(blocks.statusOf(pool)).to.deep.equal({ total: 4, full: 0, lent: 0, current: '10.0.0.0/30' });
    tell(blockOf('10.0.0.0/30', 1));
    tell(blockOf('10.0.0.4/30', 2));
    for (let host = 8; host < 12; host++) book.recordWrite(leaseOf(`10.0.0.${host}`, 10 + host, { uid: `l${host}` }));
    expect(blocks.statusOf(pool)).to.deep.equal({ total: 4, full: 1, lent: 2, current: '10.0.0.12/30' });
    for (let host = 12; host < 15; host++) book.recordWrite(leaseOf(`10.0.0.${host}`, 10 + host, { uid: `l${host}` }));
    // nothing else is left
    expect(blocks.statusOf(pool)).to.deep.equal({ total: 4, full: 2, lent: 2, current: '10.0.0.0/30' });
    for (let host = 1; host < 8; host++) book.recordWrite(leaseOf(`10.0.0.${host}`, 30 + host, { uid: `l${host}` }));
    expect(blocks.statusOf(pool)).to.deep.equal({ total: 4, full: 4, lent: 2 });
  });

  it('caps the number of slices of a huge pool', () => {
    const pool = compiledPool({ cidr: '2001:db8::/64', blockSize: { ipv6: 128 } });
    const status = { total: 2 ** 53 - 1, full: 0, lent: 0, current: '2001:db8::1/128' };
    expect(blocks.statusOf(pool)).to.deep.equal(status);
  });

  it('delays the deletion of a pool that has blocks, unless their release state is unknown', () => {
    tell(blockOf('10.0.0.0/30', 1));
    tell(blockOf('10.0.0.4/30', 2, { release: 'asked-politely' }));
    expect(blocks.countDelayingDeletion('blue')).to.equal(1);
    expect(blocks.countDelayingDeletion('green')).to.equal(0);
    isGateOpen = false;
    expect(blocks.countDelayingDeletion('blue')).to.equal(0);
  });

  it('reports a pool when a block is added or removed, or gets an unknown release state', () => {
    const told: string[] = [];
    blocks.onChange((pools) => told.push(...pools));
    let version = 0;
    const say = (release?: string) => tell(blockOf('10.0.0.0/30', ++version, release === undefined ? {} : { release }));
    say();
    expect(told).to.deep.equal(['blue']);
    for (const word of ['marked-for-release', 'do-not-release', undefined, 'marked-for-release', 'released']) say(word);
    expect(told).to.deep.equal(['blue']);
    say('asked-politely');
    say('asked-nicely');
    expect(told).to.deep.equal(['blue', 'blue']);
    say();
    tell(blockOf('10.0.0.4/30', 1, { pool: 'green' }));
    const object = readBlock(blockOf('10.0.0.0/30', ++version));
    feedOf(ADDRESS_BLOCK_WATCH).tell({ type: 'removed', object });
    expect(told).to.deep.equal(['blue', 'blue', 'blue', 'green', 'blue']);
  });

  it('syncs every pool, and deleted pools with blocks', () => {
    feedOf(ADDRESS_POOL_WATCH).set(adminPool('green'));
    tell(blockOf('10.0.0.0/30', 1));
    expect(blocks.allPools()).to.deep.equal(['green', 'blue']);
  });

  it('counts blocks by release state in a metric', async () => {
    tell(blockOf('10.0.0.0/30', 1));
    tell(blockOf('10.0.0.4/30', 2));
    tell(blockOf('10.0.0.4/30', 3, { release: 'marked-for-release' }));
    const shown = await metrics.registry.metrics();
    const counts = shown.split('\n').filter((line) => line.startsWith('holdfast_ipam_blocks{'));
    expect(counts).to.have.members([
      'holdfast_ipam_blocks{state="lent"} 1',
      'holdfast_ipam_blocks{state="marked-for-release"} 1',
    ]);
  });
});
