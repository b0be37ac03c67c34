import { expect } from 'chai';
import {
  block,
  nodeWith,
  planGiven,
  withRelease,
  reclaimableSince,
  LONG_AGO,
  NOW,
  Refused,
} from './testing/block-plan-cases.js';

describe('the plan of blocks', () => {
  it('remembers since when a block is too much, and forgets it once it is not', () => {
    const idle = { nodes: { n1: nodeWith(0) }, blocks: [block(0)] };
    const first = planGiven(idle).state;
    expect([...first]).to.deep.equal([['u0', reclaimableSince(NOW)]]);
    const memories = Object.fromEntries(first);
    expect([...planGiven({ ...idle, memories, now: NOW + 5 }).state]).to.deep.equal([['u0', reclaimableSince(NOW)]]);
    expect(planGiven({ blocks: [block(0)], memories, now: NOW + 5 }).state.size).to.equal(0);
  });

  it('remembers through a time in which its pool is idle', () => {
    const memories = { u0: reclaimableSince(LONG_AGO) };
    expect(planGiven({ phase: 'idle', blocks: [block(0)], memories }).state.get('u0')).to.deep.equal(memories.u0);
  });

  it('remembers nothing of blocks that are gone', () => {
    expect(planGiven({ memories: { u9: reclaimableSince(LONG_AGO) } }).state.size).to.equal(0);
  });

  it('begins anew after a refusal', () => {
    const nodes = { n1: nodeWith(0) };
    const { state } = planGiven({
      nodes,
      blocks: [block(0, withRelease(Refused))],
      memories: { u0: reclaimableSince(LONG_AGO) },
    });
    const next = planGiven({ nodes, blocks: [block(0)], memories: Object.fromEntries(state) });
    expect(next.actions).to.deep.equal([]);
    expect(next.state.get('u0')).to.deep.equal({ ...reclaimableSince(NOW), refusedAt: NOW });
  });
});
