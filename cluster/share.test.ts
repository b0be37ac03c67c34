import { expect } from 'chai';
import { heapBytes } from '../test/heap.js';
import { intern, share } from './share.js';

describe('a text that many objects share', () => {
  it('is returned unchanged', () => {
    expect(intern('blue')).to.equal('blue');
  });

  it('is not kept in memory after its objects if it is long', () => {
    const before = heapBytes();
    for (let index = 0; index < 50; index++) intern(`${index}`.padEnd(200_000, 'x'));
    expect(heapBytes() - before).to.be.below(2_000_000);
  });
});

describe('a value that many objects share', () => {
  it('is one object for equal values', () => {
    expect(share({ networks: [{ name: 'data' }] })).to.equal(share({ networks: [{ name: 'data' }] }));
    expect(share({ name: 'a' }))
      .to.deep.equal({ name: 'a' })
      .and.not.equal(share({ name: 'b' }));
  });

  it('stays shared while others come and go', () => {
    const frequent = share({ name: 'frequent' });
    for (let index = 0; index < 10_000; index++) {
      share({ index });
      expect(share({ name: 'frequent' })).to.equal(frequent);
    }
  });

  it('is not kept in memory after its objects if it is long', () => {
    const before = heapBytes();
    for (let index = 0; index < 50; index++) share({ text: `${index}`.padEnd(200_000, 'x') });
    expect(heapBytes() - before).to.be.below(2_000_000);
  });
});
