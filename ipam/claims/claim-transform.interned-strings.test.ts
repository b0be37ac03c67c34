import { expect } from 'chai';
import { heapBytes } from '../../test/heap.js';
import { intern } from './claim-transform.js';

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
