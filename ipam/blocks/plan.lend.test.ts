import {
  block,
  itPlansBlocks,
  nodeWith,
  withRelease,
  unfitNode,
  LONG_AGO,
  DELAY,
  NOW,
} from './testing/block-plan-cases.js';

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
