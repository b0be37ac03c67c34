import {
  block,
  itPlansBlocks,
  nodeWith,
  withRelease,
  reclaimableSince,
  LONG_AGO,
  DELAY,
  NOW,
  Marked,
  Ready,
  Refused,
  Released,
  Pressure,
  NodeGone,
  Withdrawn,
} from './testing/block-plan-cases.js';

describe('the plan of blocks, of those on their way back', () => {
  describe('leaves them', () => {
    itPlansBlocks([
      { name: 'what was refused is cleared', scene: { blocks: [block(0, withRelease(Refused))] }, does: ['keep 0'] },
      {
        name: 'also where it still is too much',
        scene: {
          nodes: { n1: nodeWith(0) },
          blocks: [block(0, withRelease(Refused))],
          memories: { u0: reclaimableSince(LONG_AGO) },
        },
        does: ['keep 0'],
      },
      {
        name: 'also of an idle pool',
        scene: { phase: 'idle', blocks: [block(0, withRelease(Refused))] },
        does: ['keep 0'],
      },
      {
        name: 'what was given back is left to its node whose pods use it all the same, however short claims are',
        scene: { blocks: [block(0, { ...withRelease(Ready, Pressure), used: 1 })], claimsPressedAt: { 4: NOW } },
        does: ['keep 0'],
        at: DELAY,
      },
      {
        name: 'what a node needs as much as those who go without is left to it',
        scene: {
          nodes: { n1: nodeWith(1), n2: nodeWith(1) },
          blocks: [block(0, withRelease(Marked, Pressure))],
        },
        does: ['keep 0'],
      },
      ...[Marked, Ready].flatMap((word) => [
        {
          name: `what says ${word} and has nothing free helps nobody, and is left to its node`,
          scene: { blocks: [block(0, { ...withRelease(word, Pressure), free: 0 })], claimsPressedAt: { 4: NOW } },
          does: ['keep 0'],
          at: DELAY,
        },
        {
          name: `what says ${word} is left to its node that needs it again`,
          scene: { blocks: [block(0, withRelease(word))], unlent: [64], memories: { u0: reclaimableSince(LONG_AGO) } },
          does: ['keep 0'],
        },
        {
          name: `what says ${word} is left to its node whose pods use it`,
          scene: { blocks: [block(0, { ...withRelease(word), used: 2 })] },
          does: ['keep 0'],
        },
        {
          name: `what says ${word} is left to its node that is no longer short of it, and no longer has too much`,
          scene: { blocks: [block(0, { used: 56, free: 8 }), block(1, withRelease(word))] },
          does: ['keep 1'],
        },
        {
          name: `what says ${word} under a pressure that is over is left to its node`,
          scene: { blocks: [block(0, withRelease(word, Pressure))], claimsPressedAt: { 4: LONG_AGO } },
          does: ['keep 0'],
        },
        {
          name: `what says ${word} is not touched where it still is too much`,
          scene: {
            nodes: { n1: nodeWith(0) },
            blocks: [block(0, withRelease(word))],
            memories: { u0: reclaimableSince(NOW - 1) },
          },
          does: [],
          ...(word === Ready && { at: DELAY - 1 }),
        },
        {
          name: `what says ${word} is not touched by an idle pool`,
          scene: { phase: 'idle' as const, blocks: [block(0, withRelease(word))] },
          does: [],
        },
        {
          name: `what says ${word} though its node was gone is left to the node that is there again`,
          scene: {
            blocks: [block(0, withRelease(word, NodeGone))],
            memories: { u0: reclaimableSince(LONG_AGO, NodeGone) },
          },
          does: ['keep 0'],
        },
      ]),
    ]);
  });

  describe('takes them', () => {
    itPlansBlocks([
      {
        name: 'what was given back is taken after the whole delay',
        scene: {
          nodes: { n1: nodeWith(0) },
          blocks: [block(0, withRelease(Ready))],
          memories: { u0: reclaimableSince(LONG_AGO) },
        },
        does: ['take-back 0'],
      },
      {
        name: 'a restart begins the delay anew',
        scene: { nodes: { n1: nodeWith(0) }, blocks: [block(0, withRelease(Ready))] },
        does: [],
        at: DELAY,
      },
      {
        name: 'under pressure it is taken at once',
        scene: { blocks: [block(0, withRelease(Ready, Pressure))], claimsPressedAt: { 4: NOW } },
        does: ['take-back 0'],
        at: DELAY,
      },
      {
        name: 'also what was asked for when there was time',
        scene: {
          nodes: { n1: nodeWith(0) },
          blocks: [block(0, withRelease(Ready))],
          claimsPressedAt: { 4: NOW },
          memories: { u0: reclaimableSince(NOW) },
        },
        does: ['take-back 0'],
        at: DELAY,
      },
      {
        name: 'what is withdrawn and given back is taken at once',
        scene: { blocks: [block(0, { ...withRelease(Ready, Withdrawn), isSlice: false })] },
        does: ['take-back 0'],
      },
      {
        name: 'nothing is taken that its node has not answered for',
        scene: {
          nodes: { n1: nodeWith(0) },
          blocks: [block(0, withRelease(Marked))],
          memories: { u0: reclaimableSince(LONG_AGO) },
        },
        does: [],
      },
      {
        name: 'not even of a pool that is being deleted',
        scene: { phase: 'ending', blocks: [block(0, withRelease(Marked, Withdrawn))] },
        does: [],
      },
      {
        name: 'where the node is gone nobody answers, and it is taken after the delay',
        scene: {
          nodes: {},
          blocks: [block(0, withRelease(Marked, NodeGone))],
          memories: { u0: reclaimableSince(LONG_AGO, NodeGone) },
        },
        does: ['take-back 0 unanswered'],
      },
      {
        name: 'not before',
        scene: {
          nodes: {},
          blocks: [block(0, withRelease(Marked, NodeGone))],
          memories: { u0: reclaimableSince(NOW - 1, NodeGone) },
        },
        does: [],
        at: DELAY - 1,
      },
      {
        name: 'the time in which it was merely too much does not count',
        scene: { nodes: {}, blocks: [block(0, withRelease(Marked))], memories: { u0: reclaimableSince(LONG_AGO) } },
        does: [],
        at: DELAY,
      },
    ]);
  });

  describe('ends them', () => {
    itPlansBlocks([
      {
        name: 'what was taken back is deleted',
        scene: { blocks: [block(0, withRelease(Released))] },
        does: ['delete 0'],
      },
      {
        name: 'then it goes',
        scene: { blocks: [block(0, { ...withRelease(Released), deleting: true })] },
        does: ['let-go 0'],
      },
      {
        name: 'unless others hold it',
        scene: { blocks: [block(0, { ...withRelease(Released), deleting: true, finalizers: ['a/b'] })] },
        does: [],
      },
      {
        name: 'also where its pool is idle',
        scene: { phase: 'idle', blocks: [block(0, withRelease(Released))] },
        does: ['delete 0'],
      },
      {
        name: 'blocks of a pool that is no more are deleted, whatever they say',
        scene: {
          phase: 'ended',
          blocks: [
            block(0),
            block(1, withRelease(Marked)),
            block(2, withRelease(Refused)),
            block(3, withRelease(Ready)),
          ],
        },
        does: ['delete 0', 'delete 1', 'delete 2', 'delete 3'],
      },
      {
        name: 'then they go',
        scene: { phase: 'ended', blocks: [block(0, { deleting: true })] },
        does: ['let-go 0'],
      },
      ...(['serving', 'idle', 'ending', 'ended'] as const).map((phase) => ({
        name: `a word of another version is left alone where the pool is ${phase}`,
        scene: {
          phase,
          nodes: {},
          blocks: [block(0, { ...withRelease('asked-politely'), deleting: true, isSlice: false })],
        },
        does: [],
      })),
    ]);
  });
});
