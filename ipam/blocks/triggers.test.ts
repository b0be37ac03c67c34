import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { KubeObject } from '../../api/meta.js';
import type { ObjectChange } from '../../kube/informer.js';
import { blockRecord } from '../../test/block-objects.js';
import { leaseOf } from '../../test/lease-objects.js';
import { adminPool } from '../../test/pool-objects.js';
import { type LeaseRecord, readLease } from '../core/lease.js';
import type { LeaseChange } from '../leases/lease-book.js';
import type { BlockChange } from './block-book.js';
import { watchBlockSources } from './triggers.js';

/** A source of changes that a test sets off. */
class Source<C> {
  readonly #handlers: ((change: C) => void)[] = [];

  onChange(handler: (change: C) => void): void {
    this.#handlers.push(handler);
  }

  tell(change: C): void {
    for (const handler of this.#handlers) handler(change);
  }
}

const BLOCK = blockRecord('10.0.0.64/26', 1);

describe('which pools’ blocks are synced', () => {
  const pools = new Source<ObjectChange<AddressPool>>();
  const nodes = new Source<ObjectChange<KubeObject>>();
  const book = new Source<LeaseChange>();
  const blocks = new Source<BlockChange>();
  const networks = new Source<ReadonlySet<string>>();
  const pressed: ((pool: string) => void)[] = [];
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
        nodeUse: { poolsOf: (node) => (node === 'n1' ? ['blue', 'green'] : []) },
        pressure: {
          onPress: (handler) => void pressed.push(handler),
          forget: (pool) => void forgotten.push(`pressure ${pool}`),
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

  it('those of a lease that comes or goes: its own, and those that have lent blocks there', () => {
    for (const change of [{ after: lease(1) }, { before: lease(1) }]) {
      added = [];
      book.tell(change);
      expect(added).to.deep.equal(['blue', 'overlapping']);
    }
    added = [];
    book.tell({ after: lease(1, { pool: 'bare' }) });
    expect(added).to.deep.equal(['bare', 'blue', 'overlapping']);
  });

  it('its own where it is another node’s, or is released', () => {
    book.tell({ before: lease(1, { node: 'n1' }), after: lease(2, { node: 'n2' }) });
    book.tell({ before: lease(1), after: lease(2, { releasedAt: 5 }) });
    expect(added).to.deep.equal(['blue', 'blue']);
  });

  it('none where nothing else of it has changed', () => {
    book.tell({ before: lease(1, { node: 'n1' }), after: lease(2, { node: 'n1', containerID: 'c' }) });
    expect(added).to.deep.equal([]);
  });

  it('those of a node that comes, goes, or has other labels', () => {
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

  it('not those of a node that merely says that it lives', () => {
    const object = { metadata: { name: 'n1', resourceVersion: '2', labels: { a: '1' } } };
    const before = { metadata: { name: 'n1', resourceVersion: '1', labels: { a: '1' } } };
    nodes.tell({ type: 'changed', object, before });
    expect(added).to.deep.equal([]);
  });

  it('the pool of a block that changes, of claims that are short, and of networks that are served otherwise', () => {
    blocks.tell({ pool: 'blue', before: BLOCK, after: BLOCK });
    for (const press of pressed) press('red');
    networks.tell(new Set(['net']));
    expect(added).to.deep.equal(['blue', 'red', 'net1', 'net2']);
  });

  it('a pool that is being deleted, or is gone, of which nothing is remembered', () => {
    pools.tell({ type: 'changed', object: adminPool('blue', { deleting: true }), before: adminPool('blue') });
    expect({ added, forgotten }).to.deep.equal({ added: ['blue'], forgotten: [] });
    pools.tell({ type: 'removed', object: adminPool('blue'), before: adminPool('blue') });
    expect(added).to.deep.equal(['blue', 'blue']);
    expect(forgotten).to.deep.equal(['slices blue', 'pressure blue']);
  });

  it('not a pool whose status is written', () => {
    pools.tell({ type: 'changed', object: adminPool('blue'), before: adminPool('blue') });
    expect(added).to.deep.equal([]);
  });
});
