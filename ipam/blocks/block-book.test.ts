import { expect } from 'chai';
import type { AddressBlock } from '../../api/address-block.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { blockOf } from '../../test/objects/block-objects.js';
import { type BlockRecord, readBlock } from '../../addressing/block/block.js';
import { parseCidr, rangeOf } from '../../addressing/address/cidr.js';
import { BlockBook } from './block-book.js';

const CIDR = '10.0.0.64/26';

describe('the book of blocks', () => {
  let book: BlockBook;
  let watch: (type: ObjectChange<BlockRecord>['type'], block: AddressBlock) => void;
  let told: string[];

  beforeEach(() => {
    book = new BlockBook();
    book.attach({ onChange: (handler) => (watch = (type, block) => handler({ type, object: readBlock(block) })) });
    told = [];
    const text = (block?: BlockRecord) => (block ? `${block.metadata.uid}@${block.metadata.resourceVersion}` : '-');
    book.onChange(({ before, after }) => told.push(`${text(before)} ${text(after)}`));
  });

  const of = (uid: string, version: number, release?: string): AddressBlock => {
    const block = blockOf(CIDR, version, release === undefined ? {} : { release });
    return { ...block, metadata: { ...block.metadata, uid } };
  };
  const known = () =>
    book.ofPool('blue').map(({ metadata, release }) => `${metadata.resourceVersion} ${release ?? ''}`);

  it('stores writes at once and ignores older versions', () => {
    book.wrote(of('a', 5, 'marked-for-release'));
    watch('added', of('a', 4));
    expect(known()).to.deep.equal(['5 marked-for-release']);
    watch('changed', of('a', 5, 'marked-for-release'));
    watch('changed', of('a', 6, 'ready-for-release'));
    book.wrote(of('a', 5, 'marked-for-release'));
    expect(known()).to.deep.equal(['6 ready-for-release']);
    expect(told).to.deep.equal(['- a@5', 'a@5 a@6']);
  });

  it('does not restore a deleted block', () => {
    book.wrote(of('a', 5));
    book.forget(readBlock(of('a', 5)));
    watch('added', of('a', 5));
    book.wrote(of('a', 6));
    expect(known()).to.deep.equal([]);
    expect(book.pools()).to.deep.equal([]);
    watch('removed', of('a', 7));
    watch('added', of('b', 8));
    expect(known()).to.deep.equal(['8 ']);
  });

  it('reports a new block of the same name as a removal and an addition', () => {
    watch('added', of('a', 5));
    watch('added', of('b', 6));
    expect(told).to.deep.equal(['- a@5', 'a@5 -', '- b@6']);
    watch('removed', of('a', 7));
    expect(known()).to.deep.equal(['6 ']);
  });

  it('lists the pools of the blocks of a node', () => {
    watch('added', of('a', 5));
    watch('added', blockOf('10.0.0.128/26', 5));
    watch('added', blockOf('10.0.0.64/26', 5, { pool: 'green' }));
    watch('added', blockOf('10.0.0.192/26', 5, { node: 'n2' }));
    expect(book.poolsOf('n1')).to.deep.equal(['blue', 'green']);
    watch('changed', of('a', 6, 'marked-for-release'));
    watch('removed', blockOf('10.0.0.128/26', 6));
    expect(book.poolsOf('n1')).to.have.members(['blue', 'green']);
    const another = blockOf(CIDR, 7, { node: 'n2' });
    watch('added', { ...another, metadata: { ...another.metadata, uid: 'b' } });
    expect([book.poolsOf('n1'), book.poolsOf('n2'), book.poolsOf('n3')]).to.deep.equal([['green'], ['blue'], []]);
  });

  it('returns the same object of assigned addresses until they change', () => {
    expect(book.lentOf('blue')[4].isEmpty).to.equal(true);
    expect(book.lentOf('blue')).to.equal(book.lentOf('green'));
    watch('added', of('a', 5));
    const lent = book.lentOf('blue');
    expect(lent[4].ranges).to.deep.equal([rangeOf(parseCidr(CIDR))]);
    expect(lent[6].isEmpty).to.equal(true);
    watch('changed', of('a', 6, 'marked-for-release'));
    expect(book.lentOf('blue')).to.equal(lent);
    book.wrote(blockOf('2001:db8::40/122', 7));
    expect(book.lentOf('blue')[6].size).to.equal(64n);
    expect(book.countOf('blue')).to.equal(2);
    watch('removed', of('a', 8));
    expect(book.lentOf('blue')[4].isEmpty).to.equal(true);
  });
});
