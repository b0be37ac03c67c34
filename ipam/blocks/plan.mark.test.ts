import {
  DELAY,
  LONG_AGO,
  Marked,
  NOW,
  NodeGone,
  Pressure,
  Refused,
  Withdrawn,
  block,
  itPlansBlocks,
  missingNode,
  nodeWith,
  planGiven,
  since,
  unfitNode,
  withRelease,
} from './testing/block-plan-cases.js';
import { expect } from 'chai';

describe('the plan of blocks', () => {
  describe('for blocks that a node does not need', () => {
    itPlansBlocks([
      {
        name: 'does not mark an excess block at once',
        given: { blocks: [block(0, { used: 1, free: 63 }), block(1)] },
        expect: [],
        requeueInMs: DELAY,
      },
      {
        name: 'does not mark an excess block just before the delay ends',
        given: { blocks: [block(0, { used: 1, free: 63 }), block(1)], state: { u1: since(LONG_AGO + 1) } },
        expect: [],
        requeueInMs: 1,
      },
      {
        name: 'marks a block that was in excess for the whole delay',
        given: { blocks: [block(0, { used: 1, free: 63 }), block(1)], state: { u1: since(LONG_AGO) } },
        expect: ['mark 1 ExcessAddresses'],
      },
      {
        name: 'keeps a block if the node has exactly maxFree free addresses',
        given: { blocks: [block(0, { used: 56, free: 8 }), block(1)], state: { u1: since(LONG_AGO) } },
        expect: [],
      },
      {
        name: 'marks a block if the node has more than maxFree free addresses',
        given: { blocks: [block(0, { used: 55, free: 9 }), block(1)], state: { u1: since(LONG_AGO) } },
        expect: ['mark 1 ExcessAddresses'],
      },
      {
        name: 'marks a block if exactly minFree free addresses remain',
        given: { blocks: [block(0, { used: 55, free: 9 }), block(1, { size: 65 })], state: { u1: since(LONG_AGO) } },
        expect: ['mark 1 ExcessAddresses'],
      },
      {
        name: 'keeps a block if another one is being released already',
        given: {
          blocks: [block(0), block(1, withRelease(Marked))],
          state: { u0: since(LONG_AGO), u1: since(LONG_AGO) },
        },
        expect: [],
      },
      {
        name: 'keeps a block if fewer than minFree free addresses would remain',
        given: {
          blocks: [block(0, { used: 1, free: 7 }), block(1, { free: 66, size: 66 })],
          state: { u1: since(LONG_AGO) },
        },
        expect: [],
      },
      {
        name: 'marks only one of two blocks if either is in excess',
        given: { blocks: [block(0), block(1)], state: { u0: since(LONG_AGO), u1: since(LONG_AGO) } },
        expect: ['mark 0 ExcessAddresses'],
      },
      {
        name: 'never marks a block that pods of its node use',
        given: { nodes: { n1: unfitNode }, blocks: [block(0, { used: 1 })], state: { u0: since(LONG_AGO) } },
        expect: [],
      },
      {
        name: 'marks the last block of a node without leases',
        given: { nodes: { n1: nodeWith(0) }, blocks: [block(0)], state: { u0: since(LONG_AGO) } },
        expect: ['mark 0 ExcessAddresses'],
      },
      {
        name: 'marks the last block of a node that is no longer eligible',
        given: { nodes: { n1: unfitNode }, blocks: [block(0)], state: { u0: since(LONG_AGO) } },
        expect: ['mark 0 ExcessAddresses'],
      },
      {
        name: 'starts the delay anew if the reason changes',
        given: { nodes: { n1: nodeWith(0) }, blocks: [block(0)], state: { u0: since(LONG_AGO, NodeGone) } },
        expect: [],
        requeueInMs: DELAY,
      },
      {
        name: 'marks a block of a deleted node at once',
        given: { nodes: { n1: missingNode }, blocks: [block(0)] },
        expect: ['mark 0 NodeGone'],
      },
      { name: 'marks blocks of unknown nodes', given: { nodes: {}, blocks: [block(0)] }, expect: ['mark 0 NodeGone'] },
      {
        name: 'keeps a block of a deleted node until its leases are released',
        given: { nodes: { n1: { ...missingNode, leases: { 4: 1, 6: 0 } } }, blocks: [block(0, { used: 1 })] },
        expect: [],
      },
      {
        name: 'marks a block that is being deleted at once',
        given: { blocks: [block(0, { deleting: true })] },
        expect: ['mark 0 Withdrawn'],
      },
      {
        name: 'marks a block that is no longer a slice at once',
        given: { blocks: [block(0, { isSlice: false })] },
        expect: ['mark 0 Withdrawn'],
      },
      {
        name: 'deletes a used block that is no longer a slice, so that its node stops picking from it',
        given: { blocks: [block(0, { isSlice: false, used: 1 })] },
        expect: ['withdraw 0'],
      },
      {
        name: 'deletes such a block only once, because its finalizer keeps it',
        given: { blocks: [block(0, { isSlice: false, used: 1, deleting: true })] },
        expect: [],
      },
      {
        name: 'keeps such a block if it has no finalizer',
        given: { blocks: [block(0, { isSlice: false, used: 1, finalizers: [] })] },
        expect: [],
      },
      {
        name: 'aborts the release of such a block before it is deleted',
        given: { blocks: [block(0, { ...withRelease(Marked, Withdrawn), isSlice: false, used: 1 })] },
        expect: ['abort 0'],
      },
      ...(['idle', 'ending'] as const).map((phase) => ({
        name: `keeps such a block if the pool is ${phase}`,
        given: { phase, blocks: [block(0, { isSlice: false, used: 1 })] },
        expect: [],
      })),
      {
        name: 'marks blocks of a pool that is being deleted at once',
        given: { phase: 'ending', blocks: [block(0), block(1, { used: 1 })] },
        expect: ['mark 0 Withdrawn'],
      },
      {
        name: 'marks no block of an idle pool',
        given: { phase: 'idle', blocks: [block(0, { isSlice: false })], state: { u0: since(LONG_AGO) } },
        expect: [],
      },
      {
        name: 'does not mark a block again shortly after a refusal, for any reason',
        given: { blocks: [block(0, { isSlice: false })], state: { u0: { refusedAt: NOW - 1 } } },
        expect: [],
        requeueInMs: DELAY - 1,
      },
      {
        name: 'marks a block again when the delay after a refusal has ended',
        given: { blocks: [block(0, { isSlice: false })], state: { u0: { refusedAt: LONG_AGO } } },
        expect: ['mark 0 Withdrawn'],
      },
    ]);
  });

  describe('for a shortage of addresses', () => {
    itPlansBlocks([
      {
        name: 'marks an unused block of a node that can spare it at once, if another node has none',
        given: { nodes: { n1: nodeWith(1), n2: nodeWith(1) }, blocks: [block(0, { used: 1, free: 63 }), block(1)] },
        expect: ['mark 1 PoolExhausted'],
        requeueInMs: DELAY,
      },
      {
        name: 'keeps an unused block of a node that needs it itself',
        given: { nodes: { n1: nodeWith(1), n2: nodeWith(1) }, blocks: [block(0)] },
        expect: [],
      },
      {
        name: 'marks any unused block for claims',
        given: { blocks: [block(0)], claimShortageAt: { 4: NOW } },
        expect: ['mark 0 PoolExhausted'],
        requeueInMs: DELAY,
      },
      {
        name: 'marks blocks of nodes that do not need them first',
        given: {
          nodes: { n1: nodeWith(1), n2: nodeWith(0) },
          blocks: [block(0), block(1), block(2, { node: 'n2' })],
          claimShortageAt: { 4: NOW },
        },
        expect: ['mark 2 PoolExhausted'],
        requeueInMs: DELAY,
      },
      {
        name: 'keeps a block that pods use, even for claims',
        given: { blocks: [block(0, { used: 1 })], claimShortageAt: { 4: NOW } },
        expect: [],
        requeueInMs: DELAY,
      },
      {
        name: 'keeps a block without free addresses',
        given: { blocks: [block(0, { free: 0 }), block(1)], claimShortageAt: { 4: NOW } },
        expect: ['mark 1 PoolExhausted'],
        requeueInMs: DELAY,
      },
      {
        name: 'marks no block if one is being released already',
        given: { blocks: [block(0), block(1, withRelease(Marked, Pressure))], claimShortageAt: { 4: NOW } },
        expect: [],
        requeueInMs: DELAY,
      },
      {
        name: 'marks no block while addresses outside of blocks are free',
        given: { blocks: [block(0)], unlent: [1], claimShortageAt: { 4: NOW } },
        expect: [],
        requeueInMs: DELAY,
      },
      {
        name: 'does not mark a block shortly after a refusal, even during a shortage',
        given: { blocks: [block(0)], claimShortageAt: { 4: NOW }, state: { u0: { refusedAt: NOW - 1 } } },
        expect: [],
        requeueInMs: DELAY - 1,
      },
      {
        name: 'marks the only block that a node can spare',
        given: { nodes: { n1: nodeWith(56), n2: nodeWith(1) }, blocks: [block(0, { used: 56, free: 8 }), block(1)] },
        expect: ['mark 1 PoolExhausted'],
      },
      {
        name: 'marks no more blocks than a node can spare',
        given: {
          nodes: { n1: nodeWith(57), n2: nodeWith(1), n3: nodeWith(1) },
          blocks: [block(0, { used: 57, free: 7 }), block(1), block(2)],
        },
        expect: ['mark 2 PoolExhausted'],
        requeueInMs: DELAY,
      },
      {
        name: 'counts a block that is marked anyway among those that a node can spare',
        given: {
          nodes: { n1: nodeWith(57), n2: nodeWith(1), n3: nodeWith(1) },
          blocks: [block(0, { used: 57, free: 7 }), block(1), block(2)],
          state: { u2: since(LONG_AGO) },
        },
        expect: ['mark 2 PoolExhausted'],
      },
      {
        name: 'marks a block of the node with most free addresses first',
        given: {
          nodes: { n1: nodeWith(24), n2: nodeWith(44), n3: nodeWith(1) },
          blocks: [
            block(0, { node: 'n2', used: 44, free: 20 }),
            block(1, { node: 'n2' }),
            block(2, { used: 24, free: 40 }),
            block(3),
          ],
        },
        expect: ['mark 3 PoolExhausted'],
        requeueInMs: DELAY,
      },
      {
        name: 'marks another block in place of a refused one',
        given: { blocks: [block(0), block(1)], claimShortageAt: { 4: NOW }, state: { u0: { refusedAt: NOW - 1 } } },
        expect: ['mark 1 PoolExhausted'],
        requeueInMs: DELAY - 1,
      },
    ]);
  });
});

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
