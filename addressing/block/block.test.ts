import { expect } from 'chai';
import { type AddressBlock, BlockRelease, ReleaseReason } from '../../api/address-block.js';
import {
  type BlockRecord,
  answerBlock,
  isUsable,
  abortBlockRelease,
  lendBlock,
  removeBlockFinalizer,
  markBlock,
  readBlock,
  reclaimBlock,
} from './block.js';
import { parseCidr } from '../address/cidr.js';

function blockWith(status: AddressBlock['status'], metadata: object = {}): BlockRecord {
  const { object: block } = lendBlock('blue', parseCidr('10.1.0.64/26'), 'node1');
  return readBlock({
    ...block,
    metadata: { ...block.metadata, uid: 'u1', resourceVersion: '7', ...metadata },
    ...(status && { status }),
  });
}

describe('a block', () => {
  it('is created with the name of its slice and a finalizer', () => {
    const { metadata, pool, node } = blockWith(undefined);
    expect([metadata.name, pool, node]).to.deep.equal(['blue.10-1-0-64-26', 'blue', 'node1']);
    expect(metadata.finalizers).to.deep.equal(['ipam.holdfast.dev/lent']);
  });

  it('is rejected if it has another name than its slice', () => {
    const parse = () => blockWith(undefined, { name: 'blue.10-1-0-0-26' });
    expect(parse).to.throw(TypeError, /must have the name blue\.10-1-0-64-26/);
  });

  it('is only patched in the state that was read', () => {
    expect(markBlock(blockWith(undefined), ReleaseReason.Excess)).to.deep.equal({
      verb: 'patch-status',
      name: 'blue.10-1-0-64-26',
      body: {
        metadata: { uid: 'u1', resourceVersion: '7' },
        status: { release: 'marked-for-release', reason: 'ExcessAddresses' },
      },
    });
  });

  const words = [undefined, ...Object.values(BlockRelease), 'asked-politely'];
  const moves: { name: string; from: (string | undefined)[]; move: (block: BlockRecord) => object }[] = [
    { name: 'is marked for release', from: [undefined], move: (block) => markBlock(block, ReleaseReason.Pressure) },
    { name: 'is answered', from: [BlockRelease.Marked], move: (block) => answerBlock(block, true) },
    {
      name: 'is left to its node',
      from: [BlockRelease.Marked, BlockRelease.Ready, BlockRelease.Refused],
      move: abortBlockRelease,
    },
    { name: 'is reclaimed', from: [BlockRelease.Ready], move: (block) => reclaimBlock(block, false) },
    {
      name: 'is reclaimed from a deleted node',
      from: [BlockRelease.Ready, BlockRelease.Marked],
      move: (block) => reclaimBlock(block, true),
    },
  ];
  for (const { name, from, move } of moves) {
    for (const word of words) {
      const may = from.includes(word);
      it(`${name} ${may ? 'if' : 'never if'} its release state is ${word ?? 'absent'}`, () => {
        const block = blockWith(word === undefined ? undefined : { release: word });
        if (may) expect(move(block)).to.have.property('verb', 'patch-status');
        else expect(() => move(block)).to.throw(TypeError, 'cannot');
      });
    }
  }

  for (const word of words) {
    const wanted = word === undefined || word === BlockRelease.Refused;
    it(`is ${wanted ? '' : 'not '}usable if its release state is ${word ?? 'absent'}`, () => {
      expect(isUsable(blockWith(word === undefined ? undefined : { release: word }))).to.equal(wanted);
    });
  }

  it('is not usable while it is being deleted', () => {
    expect(isUsable(blockWith(undefined, { deletionTimestamp: '2026-01-01T00:00:00Z' }))).to.equal(false);
  });

  it('loses only our finalizer in the last write', () => {
    const block = blockWith({ release: BlockRelease.Released }, { finalizers: ['ipam.holdfast.dev/lent', 'a/b'] });
    expect(removeBlockFinalizer(block)).to.deep.include({
      body: { metadata: { uid: 'u1', resourceVersion: '7', finalizers: ['a/b'] } },
    });
  });
});
