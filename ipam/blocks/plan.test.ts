import { expect } from 'chai';
import { block, nodeWith, planGiven, withRelease, since, LONG_AGO, NOW, Refused } from './testing/block-plan-cases.js';

describe('the state of a plan of blocks', () => {
  it('records since when a block is in excess, until it is not', () => {
    const idle = { nodes: { n1: nodeWith(0) }, blocks: [block(0)] };
    const first = planGiven(idle).state;
    expect([...first]).to.deep.equal([['u0', since(NOW)]]);
    const state = Object.fromEntries(first);
    expect([...planGiven({ ...idle, state: state, now: NOW + 5 }).state]).to.deep.equal([['u0', since(NOW)]]);
    expect(planGiven({ blocks: [block(0)], state: state, now: NOW + 5 }).state.size).to.equal(0);
  });

  it('is kept while the pool is idle', () => {
    const state = { u0: since(LONG_AGO) };
    expect(planGiven({ phase: 'idle', blocks: [block(0)], state: state }).state.get('u0')).to.deep.equal(state.u0);
  });

  it('does not contain deleted blocks', () => {
    expect(planGiven({ state: { u9: since(LONG_AGO) } }).state.size).to.equal(0);
  });

  it('starts anew after a refusal', () => {
    const nodes = { n1: nodeWith(0) };
    const { state } = planGiven({ nodes, blocks: [block(0, withRelease(Refused))], state: { u0: since(LONG_AGO) } });
    const next = planGiven({ nodes, blocks: [block(0)], state: Object.fromEntries(state) });
    expect(next.actions).to.deep.equal([]);
    expect(next.state.get('u0')).to.deep.equal({ ...since(NOW), refusedAt: NOW });
  });
});
