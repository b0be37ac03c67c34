import {
  block,
  itPlansBlocks,
  nodeWith,
  withRelease,
  ineligibleNode,
  LONG_AGO,
  DELAY,
  NOW,
} from './testing/block-plan-cases.js';

describe('the plan of blocks, lending', () => {
  describe('a slice', () => {
    itPlansBlocks([
      { name: 'a node with a lease and no block is lent one', scene: { unlent: [64] }, does: ['lend 3 n1'] },
      { name: 'a node without leases is lent nothing', scene: { nodes: { n1: nodeWith(0) }, unlent: [64] }, does: [] },
      {
        name: 'a node that does not fit is lent nothing',
        scene: { nodes: { n1: ineligibleNode }, unlent: [64] },
        does: [],
      },
      { name: 'nothing is lent where nothing is left', scene: {}, does: [] },
      { name: 'the best slice comes first', scene: { unlent: [64, 63] }, does: ['lend 3 n1'] },
      {
        name: 'a node gets as many as it takes to have enough',
        scene: { unlent: [5, 3, 2] },
        does: ['lend 3 n1', 'lend 2 n1'],
      },
      {
        name: 'a node with too few free addresses is lent another block',
        scene: { blocks: [block(0, { used: 57, free: 7 })], unlent: [64] },
        does: ['lend 3 n1'],
      },
      {
        name: 'a node with just enough is not',
        scene: { blocks: [block(0, { used: 56, free: 8 })], unlent: [64] },
        does: [],
      },
      {
        name: 'free addresses of a block that is withdrawn are not counted',
        scene: { blocks: [block(0, { used: 1, isSlice: false, deleting: true })], unlent: [64] },
        does: ['lend 3 n1'],
      },
      {
        name: 'nor are those of a block whose word nobody knows',
        scene: { blocks: [block(0, withRelease('asked-politely'))], unlent: [64] },
        does: ['lend 3 n1'],
      },
      {
        name: 'who has least is lent first',
        scene: {
          nodes: { n1: nodeWith(64), n2: nodeWith(1) },
          blocks: [block(0, { used: 62, free: 2 })],
          unlent: [64],
        },
        does: ['lend 3 n2'],
      },
      { name: 'a pool that is idle lends nothing', scene: { phase: 'idle', unlent: [64] }, does: [] },
      { name: 'a pool that is being deleted lends nothing', scene: { phase: 'ending', unlent: [64] }, does: [] },
      {
        name: 'nothing is lent while claims were short of space a moment ago',
        scene: { unlent: [64], claimsPressedAt: { 4: NOW - 1 } },
        does: [],
        at: DELAY - 1,
      },
      ...([4, 6] as const).map((family) => ({
        name: `IPv${family === 4 ? 6 : 4} is, where they were short of IPv${family} alone`,
        scene: {
          nodes: { n1: { ...nodeWith(1), leases: { 4: 1, 6: 1 } } },
          ...{ unlent: [64], unlent6: [64], claimsPressedAt: { [family]: NOW - 1 } },
        },
        does: [family === 4 ? 'lend 2001:db8::/122 n1' : 'lend 3 n1'],
        at: DELAY - 1,
      })),
      {
        name: 'it is lent again once they were not for the whole delay',
        scene: { unlent: [64], claimsPressedAt: { 4: LONG_AGO } },
        does: ['lend 3 n1'],
      },
      {
        name: 'IPv6 to a node whose pods have such addresses',
        scene: { nodes: { n1: { ...nodeWith(0), leases: { 4: 0, 6: 1 } } }, unlent: [64], unlent6: [64] },
        does: ['lend 2001:db8::/122 n1'],
      },
    ]);
  });
});
