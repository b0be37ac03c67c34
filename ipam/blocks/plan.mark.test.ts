import {
  block,
  missingNode,
  itPlansBlocks,
  nodeWith,
  withRelease,
  reclaimableSince,
  ineligibleNode,
  LONG_AGO,
  DELAY,
  NOW,
  Marked,
  Pressure,
  NodeGone,
  Withdrawn,
} from './testing/block-plan-cases.js';

describe('the plan of blocks, asking', () => {
  describe('for what a node has too much', () => {
    itPlansBlocks([
      {
        name: 'a block too much is not asked for at once',
        scene: { blocks: [block(0, { used: 1, free: 63 }), block(1)] },
        does: [],
        at: DELAY,
      },
      {
        name: 'nor a moment before the delay has passed',
        scene: {
          blocks: [block(0, { used: 1, free: 63 }), block(1)],
          memories: { u1: reclaimableSince(LONG_AGO + 1) },
        },
        does: [],
        at: 1,
      },
      {
        name: 'it is asked for after it was too much for the whole delay',
        scene: { blocks: [block(0, { used: 1, free: 63 }), block(1)], memories: { u1: reclaimableSince(LONG_AGO) } },
        does: ['mark 1 ExcessAddresses'],
      },
      {
        name: 'it is not too much where the node has no more than maxFree',
        scene: { blocks: [block(0, { used: 56, free: 8 }), block(1)], memories: { u1: reclaimableSince(LONG_AGO) } },
        does: [],
      },
      {
        name: 'it is where the node has one more',
        scene: { blocks: [block(0, { used: 55, free: 9 }), block(1)], memories: { u1: reclaimableSince(LONG_AGO) } },
        does: ['mark 1 ExcessAddresses'],
      },
      {
        name: 'it is where just minFree are left',
        scene: {
          blocks: [block(0, { used: 55, free: 9 }), block(1, { size: 65 })],
          memories: { u1: reclaimableSince(LONG_AGO) },
        },
        does: ['mark 1 ExcessAddresses'],
      },
      {
        name: 'it is not where another one is on its way back already',
        scene: {
          blocks: [block(0), block(1, withRelease(Marked))],
          memories: { u0: reclaimableSince(LONG_AGO), u1: reclaimableSince(LONG_AGO) },
        },
        does: [],
      },
      {
        name: 'it is not where fewer than minFree would be left',
        scene: {
          blocks: [block(0, { used: 1, free: 7 }), block(1, { free: 66, size: 66 })],
          memories: { u1: reclaimableSince(LONG_AGO) },
        },
        does: [],
      },
      {
        name: 'of two blocks too much of each other one stays',
        scene: {
          blocks: [block(0), block(1)],
          memories: { u0: reclaimableSince(LONG_AGO), u1: reclaimableSince(LONG_AGO) },
        },
        does: ['mark 0 ExcessAddresses'],
      },
      {
        name: 'a block that pods of its node use is never asked for',
        scene: {
          nodes: { n1: ineligibleNode },
          blocks: [block(0, { used: 1 })],
          memories: { u0: reclaimableSince(LONG_AGO) },
        },
        does: [],
      },
      {
        name: 'the last block is asked for where the node has no leases any more',
        scene: { nodes: { n1: nodeWith(0) }, blocks: [block(0)], memories: { u0: reclaimableSince(LONG_AGO) } },
        does: ['mark 0 ExcessAddresses'],
      },
      {
        name: 'or is not the pool’s node any more',
        scene: { nodes: { n1: ineligibleNode }, blocks: [block(0)], memories: { u0: reclaimableSince(LONG_AGO) } },
        does: ['mark 0 ExcessAddresses'],
      },
      {
        name: 'what was unwanted for another reason was not too much for that long',
        scene: {
          nodes: { n1: nodeWith(0) },
          blocks: [block(0)],
          memories: { u0: reclaimableSince(LONG_AGO, NodeGone) },
        },
        does: [],
        at: DELAY,
      },
      {
        name: 'a block of a node that is gone is asked for at once',
        scene: { nodes: { n1: missingNode }, blocks: [block(0)] },
        does: ['mark 0 NodeGone'],
      },
      {
        name: 'also of one that nothing is known of',
        scene: { nodes: {}, blocks: [block(0)] },
        does: ['mark 0 NodeGone'],
      },
      {
        name: 'not before its leases are proven leaked',
        scene: { nodes: { n1: { ...missingNode, leases: { 4: 1, 6: 0 } } }, blocks: [block(0, { used: 1 })] },
        does: [],
      },
      {
        name: 'a block that somebody deletes is asked for at once',
        scene: { blocks: [block(0, { deleting: true })] },
        does: ['mark 0 Withdrawn'],
      },
      {
        name: 'a block that the pool does not have any more is asked for at once',
        scene: { blocks: [block(0, { isSlice: false })] },
        does: ['mark 0 Withdrawn'],
      },
      {
        name: 'one that pods use is deleted, so that its node picks from it no more',
        scene: { blocks: [block(0, { isSlice: false, used: 1 })] },
        does: ['withdraw 0'],
      },
      {
        name: 'once: its finalizer holds it until no pod uses it',
        scene: { blocks: [block(0, { isSlice: false, used: 1, deleting: true })] },
        does: [],
      },
      {
        name: 'without a finalizer that would hold it, it is left to its pods',
        scene: { blocks: [block(0, { isSlice: false, used: 1, finalizers: [] })] },
        does: [],
      },
      {
        name: 'also not one that is on its way back: it is left to its pods first',
        scene: { blocks: [block(0, { ...withRelease(Marked, Withdrawn), isSlice: false, used: 1 })] },
        does: ['keep 0'],
      },
      ...(['idle', 'ending'] as const).map((phase) => ({
        name: `nor one of a pool that is ${phase}`,
        scene: { phase, blocks: [block(0, { isSlice: false, used: 1 })] },
        does: [],
      })),
      {
        name: 'blocks of a pool that is being deleted are asked for at once',
        scene: { phase: 'ending', blocks: [block(0), block(1, { used: 1 })] },
        does: ['mark 0 Withdrawn'],
      },
      {
        name: 'an idle pool asks for nothing',
        scene: { phase: 'idle', blocks: [block(0, { isSlice: false })], memories: { u0: reclaimableSince(LONG_AGO) } },
        does: [],
      },
      {
        name: 'after a refusal it is not asked for again at once, for whatever reason',
        scene: { blocks: [block(0, { isSlice: false })], memories: { u0: { refusedAt: NOW - 1 } } },
        does: [],
        at: DELAY - 1,
      },
      {
        name: 'after a refusal and the delay it is',
        scene: { blocks: [block(0, { isSlice: false })], memories: { u0: { refusedAt: LONG_AGO } } },
        does: ['mark 0 Withdrawn'],
      },
    ]);
  });

  describe('for what others lack', () => {
    itPlansBlocks([
      {
        name: 'where a node goes without, another that can spare it is asked for an unused block at once',
        scene: { nodes: { n1: nodeWith(1), n2: nodeWith(1) }, blocks: [block(0, { used: 1, free: 63 }), block(1)] },
        does: ['mark 1 PoolExhausted'],
        at: DELAY,
      },
      {
        name: 'but not one that would go without itself',
        scene: { nodes: { n1: nodeWith(1), n2: nodeWith(1) }, blocks: [block(0)] },
        does: [],
      },
      {
        name: 'claims have it from whoever has it',
        scene: { blocks: [block(0)], claimsPressedAt: { 4: NOW } },
        does: ['mark 0 PoolExhausted'],
        at: DELAY,
      },
      {
        name: 'first from those who do not need it',
        scene: {
          nodes: { n1: nodeWith(1), n2: nodeWith(0) },
          blocks: [block(0), block(1), block(2, { node: 'n2' })],
          claimsPressedAt: { 4: NOW },
        },
        does: ['mark 2 PoolExhausted'],
        at: DELAY,
      },
      {
        name: 'claims have no block that pods use',
        scene: { blocks: [block(0, { used: 1 })], claimsPressedAt: { 4: NOW } },
        does: [],
        at: DELAY,
      },
      {
        name: 'nor one in which nothing is free: it would help nobody',
        scene: { blocks: [block(0, { free: 0 }), block(1)], claimsPressedAt: { 4: NOW } },
        does: ['mark 1 PoolExhausted'],
        at: DELAY,
      },
      {
        name: 'one that comes back already is enough',
        scene: { blocks: [block(0), block(1, withRelease(Marked, Pressure))], claimsPressedAt: { 4: NOW } },
        does: [],
        at: DELAY,
      },
      {
        name: 'nobody is asked while there is space outside of blocks',
        scene: { blocks: [block(0)], unlent: [1], claimsPressedAt: { 4: NOW } },
        does: [],
        at: DELAY,
      },
      {
        name: 'a block that was refused a moment ago is not asked for under pressure',
        scene: { blocks: [block(0)], claimsPressedAt: { 4: NOW }, memories: { u0: { refusedAt: NOW - 1 } } },
        does: [],
        at: DELAY - 1,
      },
      {
        name: 'a node that needs all it has but one block can spare that',
        scene: {
          nodes: { n1: nodeWith(56), n2: nodeWith(1) },
          blocks: [block(0, { used: 56, free: 8 }), block(1)],
        },
        does: ['mark 1 PoolExhausted'],
      },
      {
        name: 'a node gives no more than it can spare, however many go without',
        scene: {
          nodes: { n1: nodeWith(57), n2: nodeWith(1), n3: nodeWith(1) },
          blocks: [block(0, { used: 57, free: 7 }), block(1), block(2)],
        },
        does: ['mark 2 PoolExhausted'],
        at: DELAY,
      },
      {
        name: 'also where it is asked for one of them anyway',
        scene: {
          nodes: { n1: nodeWith(57), n2: nodeWith(1), n3: nodeWith(1) },
          blocks: [block(0, { used: 57, free: 7 }), block(1), block(2)],
          memories: { u2: reclaimableSince(LONG_AGO) },
        },
        does: ['mark 2 PoolExhausted'],
      },
      {
        name: 'who has most gives first',
        scene: {
          nodes: { n1: nodeWith(24), n2: nodeWith(44), n3: nodeWith(1) },
          blocks: [
            block(0, { node: 'n2', used: 44, free: 20 }),
            block(1, { node: 'n2' }),
            block(2, { used: 24, free: 40 }),
            block(3),
          ],
        },
        does: ['mark 3 PoolExhausted'],
        at: DELAY,
      },
      {
        name: 'another one is asked for in place of one that was refused',
        scene: {
          blocks: [block(0), block(1)],
          claimsPressedAt: { 4: NOW },
          memories: { u0: { refusedAt: NOW - 1 } },
        },
        does: ['mark 1 PoolExhausted'],
        at: DELAY - 1,
      },
    ]);
  });
});
