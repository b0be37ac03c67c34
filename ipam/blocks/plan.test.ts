import { expect } from 'chai';
import { block, nodeWith, plan, said, since, LONG_AGO, NOW, Refused } from './testing/block-scene.js';

describe('the plan of blocks', () => {
  it('remembers since when a block is too much, and forgets it once it is not', () => {
    const idle = { nodes: { n1: nodeWith(0) }, blocks: [block(0)] };
    const first = plan(idle).memories;
    expect([...first]).to.deep.equal([['u0', since(NOW)]]);
    const memories = Object.fromEntries(first);
    expect([...plan({ ...idle, memories, now: NOW + 5 }).memories]).to.deep.equal([['u0', since(NOW)]]);
    expect(plan({ blocks: [block(0)], memories, now: NOW + 5 }).memories.size).to.equal(0);
  });

  it('remembers through a time in which its pool is idle', () => {
    const memories = { u0: since(LONG_AGO) };
    expect(plan({ phase: 'idle', blocks: [block(0)], memories }).memories.get('u0')).to.deep.equal(memories.u0);
  });

  it('remembers nothing of blocks that are gone', () => {
    expect(plan({ memories: { u9: since(LONG_AGO) } }).memories.size).to.equal(0);
  });

  it('begins anew after a refusal', () => {
    const nodes = { n1: nodeWith(0) };
    const { memories } = plan({ nodes, blocks: [block(0, said(Refused))], memories: { u0: since(LONG_AGO) } });
    const next = plan({ nodes, blocks: [block(0)], memories: Object.fromEntries(memories) });
    expect(next.actions).to.deep.equal([]);
    expect(next.memories.get('u0')).to.deep.equal({ ...since(NOW), refusedAt: NOW });
  });
});
