import {
  DELAY,
  LONG_AGO,
  Marked,
  NOW,
  NodeGone,
  Pressure,
  Ready,
  Refused,
  Released,
  Withdrawn,
  block,
  itPlansBlocks,
  nodeWith,
  since,
  unfitNode,
  withRelease,
} from './testing/block-plan-cases.js';

describe('the plan of blocks that are being released', () => {
  describe('aborts releases:', () => {
    itPlansBlocks([
      { name: 'a refusal is cleared', given: { blocks: [block(0, withRelease(Refused))] }, expect: ['abort 0'] },
      {
        name: 'a refusal is cleared even if the block is still in excess',
        given: { nodes: { n1: nodeWith(0) }, blocks: [block(0, withRelease(Refused))], state: { u0: since(LONG_AGO) } },
        expect: ['abort 0'],
      },
      {
        name: 'a refusal is cleared even if the pool is idle',
        given: { phase: 'idle', blocks: [block(0, withRelease(Refused))] },
        expect: ['abort 0'],
      },
      {
        name: 'a block that is ready for release but in use is kept, even during a shortage of claims',
        given: { blocks: [block(0, { ...withRelease(Ready, Pressure), used: 1 })], claimShortageAt: { 4: NOW } },
        expect: ['abort 0'],
        requeueInMs: DELAY,
      },
      {
        name: 'a block is kept if its node needs it as much as other nodes',
        given: { nodes: { n1: nodeWith(1), n2: nodeWith(1) }, blocks: [block(0, withRelease(Marked, Pressure))] },
        expect: ['abort 0'],
      },
      ...[Marked, Ready].flatMap((word) => [
        {
          name: `a ${word} block without free addresses is kept`,
          given: { blocks: [block(0, { ...withRelease(word, Pressure), free: 0 })], claimShortageAt: { 4: NOW } },
          expect: ['abort 0'],
          requeueInMs: DELAY,
        },
        {
          name: `a ${word} block is kept if its node needs it again`,
          given: { blocks: [block(0, withRelease(word))], unlent: [64], state: { u0: since(LONG_AGO) } },
          expect: ['abort 0'],
        },
        {
          name: `a ${word} block is kept if pods use it`,
          given: { blocks: [block(0, { ...withRelease(word), used: 2 })] },
          expect: ['abort 0'],
        },
        {
          name: `a ${word} block is kept if the shortage has ended and it is not in excess`,
          given: { blocks: [block(0, { used: 56, free: 8 }), block(1, withRelease(word))] },
          expect: ['abort 1'],
        },
        {
          name: `a ${word} block is kept if the shortage of claims has ended`,
          given: { blocks: [block(0, withRelease(word, Pressure))], claimShortageAt: { 4: LONG_AGO } },
          expect: ['abort 0'],
        },
        {
          name: `a ${word} block stays unchanged while it is in excess`,
          given: { nodes: { n1: nodeWith(0) }, blocks: [block(0, withRelease(word))], state: { u0: since(NOW - 1) } },
          expect: [],
          ...(word === Ready && { requeueInMs: DELAY - 1 }),
        },
        {
          name: `a ${word} block of an idle pool stays unchanged`,
          given: { phase: 'idle' as const, blocks: [block(0, withRelease(word))] },
          expect: [],
        },
        {
          name: `a ${word} block of a deleted node is kept if the node exists again`,
          given: { blocks: [block(0, withRelease(word, NodeGone))], state: { u0: since(LONG_AGO, NodeGone) } },
          expect: ['abort 0'],
        },
      ]),
    ]);
  });

  describe('reclaims blocks:', () => {
    itPlansBlocks([
      {
        name: 'a block that is ready for release is reclaimed after the delay',
        given: { nodes: { n1: nodeWith(0) }, blocks: [block(0, withRelease(Ready))], state: { u0: since(LONG_AGO) } },
        expect: ['reclaim 0'],
      },
      {
        name: 'a restart starts the delay anew',
        given: { nodes: { n1: nodeWith(0) }, blocks: [block(0, withRelease(Ready))] },
        expect: [],
        requeueInMs: DELAY,
      },
      {
        name: 'a block that is ready for release is reclaimed at once during a shortage',
        given: { blocks: [block(0, withRelease(Ready, Pressure))], claimShortageAt: { 4: NOW } },
        expect: ['reclaim 0'],
        requeueInMs: DELAY,
      },
      {
        name: 'a block that was marked as excess is reclaimed at once during a shortage',
        given: {
          nodes: { n1: nodeWith(0) },
          blocks: [block(0, withRelease(Ready))],
          claimShortageAt: { 4: NOW },
          state: { u0: since(NOW) },
        },
        expect: ['reclaim 0'],
        requeueInMs: DELAY,
      },
      {
        name: 'a withdrawn block that is ready for release is reclaimed at once',
        given: { blocks: [block(0, { ...withRelease(Ready, Withdrawn), isSlice: false })] },
        expect: ['reclaim 0'],
      },
      {
        name: 'a marked block is not reclaimed before its node answers',
        given: { nodes: { n1: nodeWith(0) }, blocks: [block(0, withRelease(Marked))], state: { u0: since(LONG_AGO) } },
        expect: [],
      },
      {
        name: 'a marked block of a pool that is being deleted is not reclaimed before its node answers',
        given: { phase: 'ending', blocks: [block(0, withRelease(Marked, Withdrawn))] },
        expect: [],
      },
      {
        name: 'a marked block of a deleted node is reclaimed after the delay',
        given: {
          nodes: {},
          blocks: [block(0, withRelease(Marked, NodeGone))],
          state: { u0: since(LONG_AGO, NodeGone) },
        },
        expect: ['reclaim 0 unanswered'],
      },
      {
        name: 'a marked block of a deleted node is not reclaimed before the delay ends',
        given: {
          nodes: {},
          blocks: [block(0, withRelease(Marked, NodeGone))],
          state: { u0: since(NOW - 1, NodeGone) },
        },
        expect: [],
        requeueInMs: DELAY - 1,
      },
      {
        name: 'the time in which a block was only in excess does not count for a deleted node',
        given: { nodes: {}, blocks: [block(0, withRelease(Marked))], state: { u0: since(LONG_AGO) } },
        expect: [],
        requeueInMs: DELAY,
      },
    ]);
  });

  describe('deletes blocks:', () => {
    itPlansBlocks([
      {
        name: 'released blocks are deleted',
        given: { blocks: [block(0, withRelease(Released))] },
        expect: ['delete 0'],
      },
      {
        name: 'a released block that is being deleted loses its finalizer',
        given: { blocks: [block(0, { ...withRelease(Released), deleting: true })] },
        expect: ['remove-finalizer 0'],
      },
      {
        name: 'a released block with only other finalizers stays unchanged',
        given: { blocks: [block(0, { ...withRelease(Released), deleting: true, finalizers: ['a/b'] })] },
        expect: [],
      },
      {
        name: 'a released block of an idle pool is deleted',
        given: { phase: 'idle', blocks: [block(0, withRelease(Released))] },
        expect: ['delete 0'],
      },
      {
        name: 'blocks of a deleted pool are deleted in any release state',
        given: {
          phase: 'ended',
          blocks: [
            block(0),
            block(1, withRelease(Marked)),
            block(2, withRelease(Refused)),
            block(3, withRelease(Ready)),
          ],
        },
        expect: ['delete 0', 'delete 1', 'delete 2', 'delete 3'],
      },
      {
        name: 'blocks of a deleted pool that are being deleted lose their finalizer',
        given: { phase: 'ended', blocks: [block(0, { deleting: true })] },
        expect: ['remove-finalizer 0'],
      },
      ...(['serving', 'idle', 'ending', 'ended'] as const).map((phase) => ({
        name: `a block with an unknown release state stays unchanged if the pool is ${phase}`,
        given: {
          phase,
          nodes: {},
          blocks: [block(0, { ...withRelease('asked-politely'), deleting: true, isSlice: false })],
        },
        expect: [],
      })),
    ]);
  });
});

describe('the plan of blocks', () => {
  describe('for new blocks', () => {
    itPlansBlocks([
      { name: 'assigns a block to a node with a lease and no block', given: { unlent: [64] }, expect: ['lend 3 n1'] },
      { name: 'assigns none to nodes without leases', given: { nodes: { n1: nodeWith(0) }, unlent: [64] }, expect: [] },
      { name: 'assigns no block to an unfit node', given: { nodes: { n1: unfitNode }, unlent: [64] }, expect: [] },
      { name: 'assigns nothing if no slice is left', given: {}, expect: [] },
      { name: 'assigns the best slice first', given: { unlent: [64, 63] }, expect: ['lend 3 n1'] },
      { name: 'assigns enough blocks for minFree', given: { unlent: [5, 3, 2] }, expect: ['lend 3 n1', 'lend 2 n1'] },
      {
        name: 'assigns another block to a node with too few free addresses',
        given: { blocks: [block(0, { used: 57, free: 7 })], unlent: [64] },
        expect: ['lend 3 n1'],
      },
      {
        name: 'assigns no block to a node with exactly minFree addresses',
        given: { blocks: [block(0, { used: 56, free: 8 })], unlent: [64] },
        expect: [],
      },
      {
        name: 'does not count free addresses of a withdrawn block',
        given: { blocks: [block(0, { used: 1, isSlice: false, deleting: true })], unlent: [64] },
        expect: ['lend 3 n1'],
      },
      {
        name: 'does not count free addresses of a block with an unknown release state',
        given: { blocks: [block(0, withRelease('asked-politely'))], unlent: [64] },
        expect: ['lend 3 n1'],
      },
      {
        name: 'assigns blocks to the node with fewest free addresses first',
        given: {
          nodes: { n1: nodeWith(64), n2: nodeWith(1) },
          blocks: [block(0, { used: 62, free: 2 })],
          unlent: [64],
        },
        expect: ['lend 3 n2'],
      },
      { name: 'assigns no block of an idle pool', given: { phase: 'idle', unlent: [64] }, expect: [] },
      { name: 'assigns no block of a pool in deletion', given: { phase: 'ending', unlent: [64] }, expect: [] },
      {
        name: 'assigns nothing shortly after a shortage of claims',
        given: { unlent: [64], claimShortageAt: { 4: NOW - 1 } },
        expect: [],
        requeueInMs: DELAY - 1,
      },
      ...([4, 6] as const).map((family) => ({
        name: `assigns IPv${family === 4 ? 6 : 4} blocks during a shortage of IPv${family} only`,
        given: {
          nodes: { n1: { ...nodeWith(1), leases: { 4: 1, 6: 1 } } },
          ...{ unlent: [64], unlent6: [64], claimShortageAt: { [family]: NOW - 1 } },
        },
        expect: [family === 4 ? 'lend 2001:db8::/122 n1' : 'lend 3 n1'],
        requeueInMs: DELAY - 1,
      })),
      {
        name: 'assigns blocks again once the shortage has ended for the whole delay',
        given: { unlent: [64], claimShortageAt: { 4: LONG_AGO } },
        expect: ['lend 3 n1'],
      },
      {
        name: 'assigns an IPv6 block to a node whose pods have IPv6 addresses',
        given: { nodes: { n1: { ...nodeWith(0), leases: { 4: 0, 6: 1 } } }, unlent: [64], unlent6: [64] },
        expect: ['lend 2001:db8::/122 n1'],
      },
    ]);
  });
});
