import type { NetworkChanges } from '../../addressing/directory/directory.js';
import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { KubeObject } from '../../api/meta.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { TestSource } from '../../kube/testing/test-informer.js';
import { blockRecord } from '../../test/objects/block-objects.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import type { LeaseChange } from '../leases/lease-book.js';
import type { BlockChange } from './block-book.js';
import { watchBlockSources } from './triggers.js';

const BLOCK = blockRecord('10.0.0.64/26', 1);

describe('the triggers of block syncs', () => {
  const pools = new TestSource<ObjectChange<AddressPool>>();
  const nodes = new TestSource<ObjectChange<KubeObject>>();
  const book = new TestSource<LeaseChange>();
  const blocks = new TestSource<BlockChange>();
  const networks = new TestSource<NetworkChanges>();
  const shortageHandlers: ((pool: string) => void)[] = [];
  let added: string[] = [];
  const forgotten: string[] = [];

  before(() => {
    watchBlockSources(
      {
        pools,
        nodes,
        book,
        blocks: Object.assign(blocks, {
          poolsOf: (node: string) => (node === 'n1' ? ['blue', 'overlapping'] : []),
          countOf: (pool: string) => (pool === 'bare' ? 0 : 1),
        }),
        directory: Object.assign(networks, {
          poolsOf: (network: string) => [{ name: `${network}1` }, { name: `${network}2` }] as never,
          poolsContaining: () => ['blue', 'overlapping', 'bare'],
        }),
        leaseCounts: { poolsOf: (node) => (node === 'n1' ? ['blue', 'green'] : []) },
        shortages: {
          onShortage: (handler) => void shortageHandlers.push(handler),
          forget: (pool) => void forgotten.push(`shortages ${pool}`),
        },
        slices: { forget: (pool) => void forgotten.push(`slices ${pool}`) },
      },
      (keys) => void added.push(...keys),
    );
  });

  beforeEach(() => (added = []));

  function lease(version: number, more: Partial<LeaseRecord> = {}): LeaseRecord {
    return { ...readLease(leaseOf('10.0.0.65', version)), ...more };
  }

  it('include the pool of an added or removed lease, and pools with blocks at its address', () => {
    for (const change of [{ after: lease(1) }, { before: lease(1) }]) {
      added = [];
      book.tell(change);
      expect(added).to.deep.equal(['blue', 'overlapping']);
    }
    added = [];
    book.tell({ after: lease(1, { pool: 'bare' }) });
    expect(added).to.deep.equal(['bare', 'blue', 'overlapping']);
  });

  it('include the pool of a lease that moves to another node or is released', () => {
    book.tell({ before: lease(1, { node: 'n1' }), after: lease(2, { node: 'n2' }) });
    book.tell({ before: lease(1), after: lease(2, { releasedAt: 5 }) });
    expect(added).to.deep.equal(['blue', 'blue']);
  });

  it('ignore other changes of a lease', () => {
    book.tell({ before: lease(1, { node: 'n1' }), after: lease(2, { node: 'n1', containerID: 'c' }) });
    expect(added).to.deep.equal([]);
  });

  it('include the pools of a node that is added, removed or relabelled', () => {
    const node = (more: object = {}): KubeObject => ({ metadata: { name: 'n1', uid: 'u', ...more } });
    for (const change of [
      { type: 'added' as const, object: node() },
      { type: 'removed' as const, object: node(), before: node() },
      { type: 'changed' as const, object: node({ labels: { a: '1' } }), before: node() },
      { type: 'changed' as const, object: node({ deletionTimestamp: 'now' }), before: node() },
      { type: 'changed' as const, object: node({ uid: 'v' }), before: node() },
    ]) {
      added = [];
      nodes.tell(change);
      expect(added, JSON.stringify(change)).to.deep.equal(['blue', 'green', 'overlapping']);
    }
  });

  it('ignore heartbeats of a node', () => {
    const object = { metadata: { name: 'n1', resourceVersion: '2', labels: { a: '1' } } };
    const before = { metadata: { name: 'n1', resourceVersion: '1', labels: { a: '1' } } };
    nodes.tell({ type: 'changed', object, before });
    expect(added).to.deep.equal([]);
  });

  it('include the pool of a changed block, of a shortage, and of a network whose pools change', () => {
    blocks.tell({ pool: 'blue', before: BLOCK, after: BLOCK });
    for (const press of shortageHandlers) press('red');
    networks.tell(new Map([['net', undefined]]));
    expect(added).to.deep.equal(['blue', 'red', 'net1', 'net2']);
  });

  it('include a pool that is being deleted or is removed, and forget a removed pool', () => {
    pools.tell({ type: 'changed', object: adminPool('blue', { deleting: true }), before: adminPool('blue') });
    expect({ added, forgotten }).to.deep.equal({ added: ['blue'], forgotten: [] });
    pools.tell({ type: 'removed', object: adminPool('blue'), before: adminPool('blue') });
    expect(added).to.deep.equal(['blue', 'blue']);
    expect(forgotten).to.deep.equal(['slices blue', 'shortages blue']);
  });

  it('ignore writes of the status of a pool', () => {
    pools.tell({ type: 'changed', object: adminPool('blue'), before: adminPool('blue') });
    expect(added).to.deep.equal([]);
  });
});
